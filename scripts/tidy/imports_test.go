// Package tidy holds the repository to its own rules: who imports whom, how long things get, what must be said.
package tidy

import (
	"path"
	"strconv"
	"strings"
	"testing"
)

const module = "stockade"

// mayImport lists what each package of ours may import of ours. "std" stands for the standard library alone. A folder
// speaks for the folders below it, unless they have a line of their own.
var mayImport = map[string][]string{
	"biz/sale":    {"std"},
	"biz/batch":   {"biz/sale"},
	"biz/auth":    {"biz/sale"},
	"biz/service": {"biz/sale", "biz/batch"},
	"biz/handler": {"biz/sale", "biz/auth", "biz/service"},
	"biz/router":  {"biz/sale", "biz/auth", "biz/service", "biz/handler"},
	"shard":       {"biz/sale", "biz/batch", "shard"},
	"limiter":     {"biz/sale", "biz/batch", "limiter"},
	"cache":       {"biz/sale", "biz/batch", "cache"},
	"mq":          {"biz/sale", "biz/batch", "mq"},
	"store":       {"biz/sale", "biz/batch", "store"},
	"conf":        {"biz/sale", "biz/auth", "biz/service", "biz/router", "shard", "limiter", "cache", "mq", "store"},
	"scripts":     {"scripts"},
}

// onlyFrom lists packages that just some others may import.
var onlyFrom = map[string]string{"conf": "cmd", "cmd": "cmd", "scripts": "scripts"}

// ruleFor finds the line of mayImport for a folder; ok is false for folders that may import anything, such as cmd.
func ruleFor(dir string) (allowed []string, ok bool) {
	for d := dir; d != "."; d = path.Dir(d) {
		if allowed, ok = mayImport[d]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func within(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }

func TestImports(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.ast.Name.Name, "_test") {
			continue // tests from outside may wire packages together
		}
		allowed, ruled := ruleFor(f.dir)
		if !ruled && !within(f.dir, "cmd") {
			t.Errorf("%s: %s has no line in mayImport", f.path, f.dir)
			continue
		}
		for _, spec := range f.ast.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := refused(f, target, allowed, ruled); why != "" {
				t.Errorf("%s: %s must not import %s: %s", f.at(spec), f.dir, target, why)
			}
		}
	}
}

// refused says why a file may not import target, or "".
func refused(f goFile, target string, allowed []string, ruled bool) string {
	ours, isOurs := strings.CutPrefix(target, module+"/")
	if !isOurs {
		// A dot in its first part tells a module from the standard library.
		first, _, _ := strings.Cut(target, "/")
		if len(allowed) == 1 && allowed[0] == "std" && strings.Contains(first, ".") && !f.isTest() {
			return "it may use the standard library only"
		}
		return ""
	}
	for parent, from := range onlyFrom {
		if within(ours, parent) && !within(f.dir, from) && !within(f.dir, parent) {
			return "that is for " + from + " alone"
		}
	}
	if !ruled {
		return ""
	}
	for _, a := range allowed {
		if within(ours, a) {
			return ""
		}
	}
	if ours == f.dir || (f.isTest() && within(ours, f.dir)) {
		return ""
	}
	return "it may import " + strings.Join(allowed, ", ") + " of ours"
}

func TestImportRules(t *testing.T) {
	for _, tt := range []struct {
		file, target string
		refused      bool
	}{
		{"shard/lane.go", "stockade/biz/sale", false},
		{"shard/lane.go", "stockade/biz/batch", false},
		{"shard/lane.go", "github.com/redis/go-redis/v9", false},
		{"shard/lane.go", "stockade/store", true},
		{"shard/lane.go", "stockade/biz/service", true},
		{"shard/shardtest/a.go", "stockade/shard", false},
		{"shard/shardtest/a.go", "stockade/mq", true},
		{"biz/sale/a.go", "fmt", false},
		{"biz/sale/a.go", "github.com/google/uuid", true},
		{"biz/sale/a.go", "stockade/biz/batch", true},
		{"biz/sale/a_test.go", "pgregory.net/rapid", false},
		{"biz/service/a.go", "stockade/shard", true},
		{"biz/service/a.go", "stockade/conf", true},
		{"biz/handler/a.go", "stockade/biz/router", true},
		{"biz/router/a.go", "stockade/biz/handler", false},
		{"biz/router/a.go", "stockade/conf", true},
		{"conf/a.go", "stockade/store", false},
		{"conf/a.go", "stockade/cmd/stockade", true},
		{"cmd/stockade/a.go", "stockade/conf", false},
		{"cmd/stockade/a.go", "stockade/scripts/x", true},
	} {
		f := goFile{path: tt.file, dir: path.Dir(tt.file)}
		allowed, ruled := ruleFor(f.dir)
		if why := refused(f, tt.target, allowed, ruled); (why != "") != tt.refused {
			t.Errorf("%s importing %s: got %q, want refusal: %v", tt.file, tt.target, why, tt.refused)
		}
	}
}
