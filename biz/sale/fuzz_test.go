package sale

import (
	"strings"
	"testing"
)

// FuzzParseOrderID holds that parsing and printing are each other's inverse and that nothing else is taken for an id.
func FuzzParseOrderID(f *testing.F) {
	for _, seed := range []string{
		"0198c0de-0000-7000-8000-000000000001", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "", "0198c0de",
		"0198c0de-0000-7000-8000-00000000000g", "0198c0de00007000-8000-00000000000001", "{198c0de-0000-7000-8000-00000000000}",
		"0198c0de-0000-7000-8000-0000000000é", strings.Repeat("-", 36),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseOrderID(s)
		if err != nil {
			if id != (OrderID{}) {
				t.Fatalf("%q: an error and the id %s", s, id)
			}
			return
		}
		if id.String() != strings.ToLower(s) {
			t.Fatalf("%q prints as %s", s, id)
		}
		var again OrderID
		if err := again.UnmarshalText([]byte(id.String())); err != nil || again != id {
			t.Fatalf("%q reads back as %s, %v", s, again, err)
		}
	})
}
