package handler

import (
	"encoding/json"
	"strings"
	"testing"
)

func decodePurchase(body string) (int64, *Problem) {
	d := &decoder{raw: []byte(body)}
	return d.purchase()
}

// FuzzDecodePurchase compares the strict decoder with the lenient one of the standard library: whatever we take, it
// takes too, and reads the same; and what we refuse names a field and can be answered.
func FuzzDecodePurchase(f *testing.F) {
	for _, seed := range []string{
		`{"quantity":1}`, ` { "quantity" : 1000 } `, `{"quantit\u0079":7}`, `{"quantity":0}`, `{"quantity":-1}`,
		`{"quantity":1.0}`, `{"quantity":"1"}`, `{"quantity":9223372036854775808}`, `{"quantity":null}`, `{"quantity":[[1]]}`,
		`{"quantity":1,"quantity":1}`, `{"quantity":1,"a":{"b":[]}}`, `{}`, ``, `[]`, `{"quantity":1}}`, "{\"\xff\":1}",
		`{"quantity":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		n, problem := decodePurchase(string(body))
		if problem != nil {
			if problem.Field == "" && problem.Code != MalformedBody {
				t.Fatalf("%q: a problem without a field: %+v", body, problem)
			}
			if status := problem.Code.Info().Status; status != 400 && status != 422 {
				t.Fatalf("%q: status %d", body, status)
			}
			return
		}
		if n < 1 || n > 1000 {
			t.Fatalf("%q: quantity %d", body, n)
		}
		var lenient map[string]int64
		if err := json.Unmarshal(body, &lenient); err != nil || len(lenient) != 1 || lenient["quantity"] != n {
			t.Fatalf("%q: we read %d, the standard library %v, %v", body, n, lenient, err)
		}
	})
}

func TestDecoderIsCleanAfterEachUse(t *testing.T) {
	var pool decoders
	for _, body := range []string{`{"quantity":7}`, `{"quantity":`, `{"quantity":[[[[[[[[[[`, `{"quantity":7}`} {
		d := pool.get()
		d.raw = append(d.raw[:0], body...)
		n, problem := d.purchase()
		if good := body == `{"quantity":7}`; good != (problem == nil && n == 7) {
			t.Errorf("%s: %d, %+v", body, n, problem)
		}
		pool.put(d)
	}
}

func TestDecodingAPurchaseDoesNotAllocate(t *testing.T) {
	d := (&decoders{}).get()
	body := []byte(`{"quantity":1}`)
	allocations := testing.AllocsPerRun(1000, func() {
		d.raw = append(d.raw[:0], body...)
		if n, problem := d.purchase(); n != 1 || problem != nil {
			t.Error(n, problem)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestProblemTextIsAlwaysJSON(t *testing.T) {
	for _, text := range []string{`a"b\c`, "\x00\x1f\u2028", "\xff\xfe", strings.Repeat("é", 100)} {
		raw := appendText(nil, text)
		var back string
		if err := json.Unmarshal(raw, &back); err != nil || back != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("%q became %s: %v", text, raw, err)
		}
		if name := quoteName(text); len(name) > maxNameEcho || name != strings.ToValidUTF8(name, "") {
			t.Errorf("%q is echoed as %q", text, name)
		}
	}
}
