//go:build services

package drill_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// reshareBounds are how long a reshare may take, by its kind: full ones at 100 000 orders.
var reshareBounds = map[string]time.Duration{"light": 20 * time.Millisecond, "full": 5 * time.Second}

// reshares prints what the nodes say about the reshares that they ran. The bound of light ones is for a machine that has
// nothing else to do, so they are only shown.
func (w *world) reshares() {
	took, reasons := map[string][]time.Duration{}, map[string]int{}
	for _, n := range w.launched {
		for _, line := range n.MustLines() {
			if !strings.Contains(line, `"reshare done"`) {
				continue
			}
			var entry struct {
				Kind, Reason string
				Took         time.Duration
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				w.t.Errorf("%v in %s", err, line)
				continue
			}
			took[entry.Kind] = append(took[entry.Kind], entry.Took)
			reasons[entry.Reason]++
		}
	}
	w.t.Logf("reshares by reason: %v", reasons)
	for kind, all := range took {
		slices.Sort(all)
		p50, p99, bound := percentile(all, 50), percentile(all, 99), reshareBounds[kind]
		w.t.Logf("%d %s reshares: p50 %v, p99 %v, bound %v", len(all), kind, p50.Round(time.Microsecond),
			p99.Round(time.Microsecond), bound)
		if kind == "full" && p99 > bound && !w.rough {
			w.t.Errorf("full reshares took up to %v, want at most %v", p99, bound)
		}
	}
}

// percentile of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
