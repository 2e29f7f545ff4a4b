package service

import (
	"testing"

	"gopkg.in/yaml.v3"

	"stockade/biz/sale"
)

// FuzzToggleFile reads anything as a node's file of toggles: it is refused whole, or every toggle of it is one that a file
// may set, is there once, and is what the text says.
func FuzzToggleFile(f *testing.F) {
	for _, seed := range []string{
		"", "entrance: closed\n", "rate_scale: 50\nbreaker.lanes: open\nskus:\n  demo: {durability: journal}\n",
		"skus: {demo: {entrance: closed}, other: {entrance: open}}\n", "path: mysql\n", "entrance: close\n", "entrance: [closed]\n",
		"entrance: closed\nentrance: open\n", "entrance: &a closed\nfallback: *a\n", "--- {}\n--- {}\n", "skus: {\"\": {entrance: closed}}\n",
		"<<: {entrance: closed}\n", "breaker.lane.[::1]:6379: open\n", "rate_scale: 1e2\n", "\xff\xfe", "skus: [demo]\n", "!!binary x\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		toggles, err := parseToggles(text)
		if err != nil {
			if len(toggles) > 0 {
				t.Fatalf("%q: toggles beside %v", text, err)
			}
			return
		}
		var plain map[string]any
		if err := yaml.Unmarshal(text, &plain); err != nil {
			t.Fatalf("%q is taken, and is no map: %v", text, err)
		}
		again := toggleDocument{All: map[string]string{}, SKUs: map[string]map[string]string{}}
		for _, toggle := range toggles {
			kind, known := sale.ToggleKindOf(toggle.Name)
			if err := toggle.Check(); err != nil || !known || !kind.InFile {
				t.Fatalf("%q sets %+v: %v", text, toggle, err)
			}
			scope := again.All
			if toggle.Scope != "" {
				if again.SKUs[toggle.Scope] == nil {
					again.SKUs[toggle.Scope] = map[string]string{}
				}
				scope = again.SKUs[toggle.Scope]
			}
			if _, twice := scope[toggle.Name]; twice {
				t.Fatalf("%q sets %s of %q twice", text, toggle.Name, toggle.Scope)
			}
			scope[toggle.Name] = toggle.Value
		}
		written, err := yaml.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseToggles(written)
		if err != nil || len(back) != len(toggles) {
			t.Fatalf("%q written again as %q is %+v, %v", text, written, back, err)
		}
		for i := range back {
			if back[i] != toggles[i] {
				t.Fatalf("%q: %+v came back as %+v", text, toggles[i], back[i])
			}
		}
	})
}
