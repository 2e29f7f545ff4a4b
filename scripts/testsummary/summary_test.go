package main

import (
	"strings"
	"testing"
)

func summarize(t *testing.T, lines ...string) (printed string, total totals) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out)
	if err := read(strings.NewReader(strings.Join(lines, "\n")), s); err != nil {
		t.Fatal(err)
	}
	return out.String(), s.count()
}

func TestCount(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   string
	}{
		{"nothing", nil, "0 passed, 0 failed"},
		{"passed and failed", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
			`{"Action":"pass","Package":"p","Test":"A"}`,
			`{"Action":"run","Package":"p","Test":"B"}`,
			`{"Action":"fail","Package":"p","Test":"B"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "1 passed, 1 failed"},
		{"subtests stand for their parent", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
			`{"Action":"run","Package":"p","Test":"A/x"}`,
			`{"Action":"pass","Package":"p","Test":"A/x"}`,
			`{"Action":"run","Package":"p","Test":"A/y"}`,
			`{"Action":"fail","Package":"p","Test":"A/y"}`,
			`{"Action":"fail","Package":"p","Test":"A"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "1 passed, 1 failed"},
		{"parent fails by itself", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
			`{"Action":"run","Package":"p","Test":"A/x"}`,
			`{"Action":"pass","Package":"p","Test":"A/x"}`,
			`{"Action":"fail","Package":"p","Test":"A"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "1 passed, 1 failed"},
		{"package that does not build", []string{
			`{"Action":"build-fail","ImportPath":"p"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "0 passed, 1 failed"},
		{"test that never ended", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "0 passed, 1 failed"},
		{"stream that was cut", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
		}, "0 passed, 1 failed"},
		{"skipped test", []string{
			`{"Action":"run","Package":"p","Test":"A"}`,
			`{"Action":"skip","Package":"p","Test":"A"}`,
			`{"Action":"pass","Package":"p"}`,
		}, "0 passed, 0 failed, 1 skipped"},
		{"package without tests", []string{
			`{"Action":"skip","Package":"p"}`,
		}, "0 passed, 0 failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, total := summarize(t, tt.events...); total.String() != tt.want {
				t.Errorf("count = %q, want %q", total, tt.want)
			}
		})
	}
}

func TestPrintsFailuresOnly(t *testing.T) {
	printed, _ := summarize(
		t,
		`{"Action":"build-output","ImportPath":"q","Output":"q.go:1: broken\n"}`,
		`{"Action":"run","Package":"p","Test":"A"}`,
		`{"Action":"output","Package":"p","Test":"A","Output":"quiet\n"}`,
		`{"Action":"pass","Package":"p","Test":"A"}`,
		`{"Action":"run","Package":"p","Test":"B"}`,
		`{"Action":"output","Package":"p","Test":"B","Output":"seed 42\n"}`,
		`{"Action":"fail","Package":"p","Test":"B"}`,
		`{"Action":"run","Package":"p","Test":"C"}`,
		`{"Action":"output","Package":"p","Test":"C","Output":"panic: boom\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"output","Package":"r","Output":"PASS\n"}`,
		`{"Action":"output","Package":"r","Output":"ok  \tr\t0.2s\n"}`,
		`{"Action":"pass","Package":"r"}`,
		`go: something went wrong`,
	)
	want := "q.go:1: broken\nseed 42\npanic: boom\nFAIL\tp\t0.1s\nok  \tr\t0.2s\ngo: something went wrong\n"
	if printed != want {
		t.Errorf("printed\n%s\nwant\n%s", printed, want)
	}
}
