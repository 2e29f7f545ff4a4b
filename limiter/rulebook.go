package limiter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"stockade/biz/sale"
)

// maxRulesFile bounds the rules file, in bytes.
const maxRulesFile = 64 << 10

// rulebook holds the rules by the names of breakers.
type rulebook map[string]Rule

func (c Config) rulebook() rulebook {
	return rulebook{sale.BreakerLanes: c.Lanes, sale.BreakerOutbox: c.Outbox, sale.BreakerPublish: c.Publish}
}

// of finds the rule of a breaker; a lane without one of its own goes by that of all lanes.
func (b rulebook) of(name string) Rule {
	if rule, ok := b[name]; ok {
		return rule
	}
	return b[sale.BreakerLanes]
}

// read adds what a rules file says:
//
//	lanes: {slowMs: 80, openMs: 5000}
//	lane.10.0.0.1:6379: {slowMs: 120}
//	outbox: {errorPercent: 0}
//
// What it does not name stays. It refuses everything if anything in it is unknown or out of range.
func (b rulebook) read(text []byte) (rulebook, error) {
	var doc map[string]map[string]yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one YAML document")
	}
	book := rulebook{}
	for name, rule := range b {
		book[name] = rule
	}
	if err := book.change(sale.BreakerLanes, doc[sale.BreakerLanes]); err != nil {
		return nil, err // first: single lanes start from it
	}
	for name, keys := range doc {
		if _, known := b[name]; !known && !strings.HasPrefix(name, sale.BreakerLane) {
			return nil, fmt.Errorf("%q is not %s, %s, %s or %sHOST:PORT", name,
				sale.BreakerLanes, sale.BreakerOutbox, sale.BreakerPublish, sale.BreakerLane)
		}
		if err := book.change(name, keys); err != nil {
			return nil, err
		}
	}
	return book, nil
}

func (b rulebook) change(name string, keys map[string]yaml.Node) error {
	rule := b.of(name)
	for key, node := range keys {
		var value int
		if err := node.Decode(&value); err != nil || node.Tag != "!!int" { // it would cut fractions off
			return fmt.Errorf("%s: %s: must be a whole number", name, key)
		}
		if err := rule.set(key, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	b[name] = rule
	return rule.check(name)
}

// rulesFile remembers what a file said.
type rulesFile struct {
	path    string
	looked  bool
	text    string // of the version that was read last
	failure string // why the last look could not read it
}

// changed returns the text of a version that was not read before, or why there is none, once. A file that is not there is
// empty; one that can be read again counts as changed.
func (f *rulesFile) changed() (text []byte, changed bool, err error) {
	first, failed := !f.looked, f.failure
	f.looked, f.failure = true, ""
	if text, err = readRulesFile(f.path); err != nil {
		f.failure = err.Error()
		return nil, f.failure != failed, err
	}
	changed = first || failed != "" || string(text) != f.text
	f.text = string(text)
	return text, changed, nil
}

func readRulesFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxRulesFile+1))
	if err == nil && len(text) > maxRulesFile {
		err = fmt.Errorf("larger than %d bytes", maxRulesFile)
	}
	return text, err
}
