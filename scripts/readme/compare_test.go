//go:build unix

package readme_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// masks hide what differs from run to run.
var masks = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`"request_id": *"[0-9a-f]{32}"`), `"request_id":"ID"`},
	{regexp.MustCompile(`eyJ[\w.-]+`), "JWT"},
	{regexp.MustCompile(`"order_id": *"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}"`), `"order_id":"NEW"`}, // not derived from a key
	// Those of `make run`, which takes another buyer each time.
	{regexp.MustCompile(`buyer-[0-9a-f]+`), "BUYER"},
	{regexp.MustCompile(`/v1/orders/[0-9a-f-]{36} -H`), "/v1/orders/ORDER -H"},
	{regexp.MustCompile(`\S*stockade order pay [0-9a-f-]{36}`), "stockade order pay ORDER"},
	{regexp.MustCompile(`whsec_\S+`), "SECRET"},
	{regexp.MustCompile(`the data is in \S+`), "the data is in FILE"},
	{regexp.MustCompile(`stk_\S+`), "TOKEN"},
	{regexp.MustCompile(`\S*(admin-tokens?)\b`), "$1"},
}

var (
	numbers = regexp.MustCompile(`\d[\d.]*`)
	blanks  = regexp.MustCompile(` +`)
)

func masked(text string, loose bool) string {
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.as)
	}
	if loose {
		text = numbers.ReplaceAllString(text, "N")
	}
	return strings.TrimSpace(blanks.ReplaceAllString(text, " "))
}

// difference tells how an answer differs from the page's, or "". JSON may be laid out otherwise, tables may be wider.
func difference(want, got string, loose bool) string {
	want, got = masked(want, loose), masked(got, loose)
	var a, b any
	if json.Unmarshal([]byte(want), &a) == nil && json.Unmarshal([]byte(got), &b) == nil {
		if reflect.DeepEqual(a, b) {
			return ""
		}
	} else if want == got {
		return ""
	}
	return fmt.Sprintf("--- the page says:\n%s\n--- it is:\n%s", want, got)
}

func TestDifference(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		loose     bool
		same      bool
	}{
		{`{"a": 1, "at": "2026-01-02T03:04:05Z"}`, `{"at":"2027-01-02T03:04:05.678Z","a":1}`, false, true},
		{`{"a": 1}`, `{"a": 2}`, false, false},
		{`{"a": 1}`, `{"a": 1, "b": 2}`, false, false},
		{"state  OPEN\n", "state    OPEN", false, true},
		{"state OPEN", "state DRAFT", false, false},
		{"total 500", "total 600", false, false},
		{"p50 1.5 ms", "p50 22.0 ms", true, true},
		{"agree yes", "agree NO", true, false},
	} {
		if got := difference(tt.want, tt.got, tt.loose); (got == "") != tt.same {
			t.Errorf("%q and %q: got %q, want the same: %v", tt.want, tt.got, got, tt.same)
		}
	}
}
