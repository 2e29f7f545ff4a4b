package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// toggleFile remembers which version of a file was read last.
type toggleFile struct {
	looked   bool
	there    bool
	modified time.Time
	size     int64
}

// read returns the file's toggles when it changed since the last call. A file that is not there has none. After an error
// the same version is not read again.
func (f *toggleFile) read(path string) (toggles []sale.Toggle, changed bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		changed = f.there || !f.looked
		*f = toggleFile{looked: true}
		return nil, changed, nil
	}
	if err != nil {
		return nil, false, err
	}
	seen := toggleFile{looked: true, there: true, modified: info.ModTime(), size: info.Size()}
	if seen == *f {
		return nil, false, nil
	}
	*f = seen
	if info.Size() > maxToggleFile {
		return nil, false, fmt.Errorf("larger than %d bytes", maxToggleFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false, err
	}
	toggles, err = parseToggles(text)
	for i := range toggles {
		toggles[i].ChangedAt = seen.modified.UTC()
	}
	return toggles, err == nil, err
}

// toggleDocument is the form of the file: toggle names with their values, and below skus those of single SKUs.
type toggleDocument struct {
	All  map[string]string            `yaml:",inline"`
	SKUs map[string]map[string]string `yaml:"skus"`
}

// parseToggles reads a file such as
//
//	relay: pause
//	durability: outbox
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
