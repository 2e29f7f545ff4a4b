//go:build services

package drill_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"stockade/biz/handler"
)

// toggleBound is how long nodes may need to hear of a toggle: they look every 2 s.
const toggleBound = 10 * time.Second

// set adds a setting, "name: value", to a section of the configuration of nodes that start from now on.
func (w *world) set(section, setting string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	w.must(err)
	head := "\n" + section + ": {"
	after := strings.Replace(string(text), head, head+setting+", ", 1)
	if after == string(text) {
		after += section + ": {" + setting + "}\n"
	}
	w.must(os.WriteFile(w.config, []byte(after), 0o600))
}

// createFor makes a SKU that is on sale and whose buyers have so much time to pay.
func (w *world) createFor(window time.Duration, total, limit int64, slots int) *sku {
	w.t.Helper()
	s := &sku{name: fmt.Sprintf("%s.%d", w.name, len(w.skus)+1), total: total, limit: limit}
	w.survivor().CLI("sku", "create", s.name, "--total", strconv.FormatInt(total, 10), "--payment-window", window.String(),
		"--limit", strconv.FormatInt(limit, 10), "--slots", strconv.Itoa(slots), "--open")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skus = append(w.skus, s)
	return s
}

// toggle sets a toggle and waits until every node goes by it.
func (w *world) toggle(name, value string) {
	w.t.Helper()
	w.survivor().CLI("toggle", "set", name, value, "--reason", "drill")
	for i := range w.nodes {
		n := w.node(i)
		eventually(w.t, toggleBound, fmt.Sprintf("node %d knows %s %s", i+1, name, value), func() bool {
			var all handler.TogglesJSON
			if n.Read("/admin/v1/toggles", &all) != nil {
				return false
			}
			for _, t := range all.Toggles {
				if t.Name == name && t.Scope == "" {
					return t.Value == value
				}
			}
			return false
		})
	}
}
