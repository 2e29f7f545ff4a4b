package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"stockade/biz/sale"
)

// maxToggleFile bounds the file, in bytes.
const maxToggleFile = 64 << 10

// ToggleFileState tells whether a node goes by its file.
type ToggleFileState string

// The states of a node's file.
const (
	ToggleFileNone   ToggleFileState = "none"   // no file is configured
	ToggleFileAbsent ToggleFileState = "absent" // it is not there, and says nothing
	ToggleFileRead   ToggleFileState = "read"   // what it says is in effect
	ToggleFileBroken ToggleFileState = "broken" // what it said before is in effect
)

// ToggleNews is what a node knows of its toggles.file.
type ToggleNews struct {
	Path      string          `json:"path,omitempty"`
	State     ToggleFileState `json:"state"`
	Toggles   int             `json:"toggles"`             // in effect from it
	Error     string          `json:"error,omitempty"`     // of a broken one
	ChangedAt time.Time       `json:"changed_at,omitzero"` // the file's own time
}

// CheckToggleFile returns an error when there is a file and it cannot be used: a node that starts has no earlier word of its
// operator to go by, and its defaults may be the opposite of what the file is for. An empty path is no file.
func CheckToggleFile(path string) error {
	if path == "" {
		return nil
	}
	if _, err := lookAt(path).toggles(); err != nil {
		return fmt.Errorf("toggles.file: %s: %w", path, err)
	}
	return nil
}

// toggleFile watches one file.
type toggleFile struct {
	taken look // the version that was judged last
	seen  look // by the last look, when it was another one
}

// look is what one look at the file found.
type look struct {
	there    bool
	text     string
	failure  string // why it cannot be read
	modified time.Time
}

// same tells whether two looks found the same; touching a file does not change it.
func (l look) same(other look) bool {
	return l.there == other.there && l.text == other.text && l.failure == other.failure
}

func lookAt(path string) look {
	text, modified, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return look{}
	case err != nil:
		return look{there: true, failure: err.Error()}
	}
	return look{there: true, text: string(text), modified: modified}
}

func readBounded(path string) (text []byte, modified time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, modified, err
	}
	if !info.Mode().IsRegular() {
		return nil, modified, errors.New("is no regular file") // a pipe would have us wait for a writer
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, modified, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err = io.ReadAll(io.LimitReader(f, maxToggleFile+1))
	if err == nil && len(text) > maxToggleFile {
		err = fmt.Errorf("larger than %d bytes", maxToggleFile)
	}
	return text, info.ModTime().UTC(), err
}

// next looks at the file and returns a version to judge, at most once each. A patient one waits until two looks in a row
// found the same: what an editor has half written, or cut short to write it anew, must not open an entrance.
func (f *toggleFile) next(path string, patient bool) (version look, fresh bool) {
	now := lookAt(path)
	if now.same(f.taken) {
		f.seen = now
		return now, false
	}
	if patient && !now.same(f.seen) {
		f.seen = now
		return now, false
	}
	f.taken, f.seen = now, now
	return now, true
}

// toggles are those of a version. A file that is not there has none.
func (l look) toggles() ([]sale.Toggle, error) {
	if l.failure != "" {
		return nil, errors.New(l.failure)
	}
	toggles, err := parseToggles([]byte(l.text))
	for i := range toggles {
		toggles[i].ChangedAt = l.modified
	}
	return toggles, err
}

// toggleDocument is the form of the file: toggle names with their values, and below skus those of single SKUs.
type toggleDocument struct {
	All  map[string]string            `yaml:",inline"`
	SKUs map[string]map[string]string `yaml:"skus"`
}

// parseToggles reads a file such as
//
//	entrance: closed
//	rate_scale: 50
//	breaker.lanes: open
//	skus:
//	  demo: {durability: journal}
//
// It refuses everything if anything in it is unknown. An empty file has no toggles.
func parseToggles(text []byte) ([]sale.Toggle, error) {
	var doc toggleDocument
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := dec.Decode(&toggleDocument{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one YAML document")
	}
	scopes := map[string]map[string]string{"": doc.All}
	for sku, toggles := range doc.SKUs {
		if sku == "" {
			return nil, errors.New("skus: a SKU's id must not be empty")
		}
		scopes[sku] = toggles
	}
	var all []sale.Toggle
	for _, scope := range sortedKeys(scopes) {
		for _, name := range sortedKeys(scopes[scope]) {
			toggle := sale.Toggle{Name: name, Scope: scope, Value: scopes[scope][name], Reason: "toggles.file", Actor: "this node"}
			if err := checkFileToggle(toggle); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(scope+"."+name, "."), err)
			}
			all = append(all, toggle)
		}
	}
	return all, nil
}

// checkFileToggle refuses what there is not, and what only all nodes together can have.
func checkFileToggle(toggle sale.Toggle) error {
	if err := toggle.Check(); err != nil {
		return err
	}
	if kind, _ := sale.ToggleKindOf(toggle.Name); !kind.InFile {
		return sale.BadInput("name", toggle.Name+" is for all nodes together; a file cannot set it")
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
