package limiter

import (
	"strings"
	"testing"

	"stockade/biz/sale"
)

// FuzzBreakersFile reads anything as a file of rules: it is refused whole, or every rule that comes of it is in range and
// belongs to a breaker that there is, and those before it are as they were.
func FuzzBreakersFile(f *testing.F) {
	for _, seed := range []string{
		"", "lanes: {slowMs: 80, openMs: 5000}\n", "lane.10.0.0.1:6379: {slowMs: 120}\n", "outbox: {errorPercent: 0}\n", "publish: {windowMs: 105}\n",
		"lanes: {slowMs: 1.5}\n", "lanes: {slow: 1}\n", "other: {}\n", "lanes: []\n", "lanes: {slowMs: 0x50}\n", "a: &a {slowMs: 1}\nlanes: *a\n",
		"lanes: {slowMs: 1}\nlanes: {slowMs: 2}\n", "{}\n---\n{}\n", "lanes: null\n", "lanes: {slowMs: 9223372036854775808}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := DefaultConfig().rulebook()
		book, err := before.read(text)
		for name, rule := range DefaultConfig().rulebook() {
			if before[name] != rule {
				t.Fatalf("%q changed %s of the book before it", text, name)
			}
		}
		if err != nil {
			return
		}
		for name, rule := range book {
			if _, known := before[name]; !known && !strings.HasPrefix(name, sale.BreakerLane) {
				t.Fatalf("%q rules %q", text, name)
			}
			if err := rule.check(name); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}
