package conf

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write REFERENCE.md anew")

const referenceHead = `# Configuration reference

Written by ` + "`go test ./conf -run Reference -update`" + ` from the configuration's own types; ` + "`stockade config reference`" + ` prints it.

A value comes from the first of these that has it: ` + "`--set key=value`" + `, the environment, the file of ` + "`-c`" + `, the
default. The variable of a key is STOCKADE_ and its path in capitals: ` + "`log.level` is `STOCKADE_LOG_LEVEL`" + `, a list is
separated by commas. Keys end in their unit: Ms is milliseconds. ` + "`stockade config show --origin`" + ` prints the values in
force and where they came from, with passwords and other secrets masked; ` + "`stockade config check`" + ` lists everything that
is wrong with them.
`

func TestReferenceIsUpToDate(t *testing.T) {
	cfg, real := Default(), realConfig(t)
	l := newLoader(&cfg)
	w := writer{defaults: l, real: newLoader(&real)}
	w.b.WriteString(referenceHead)
	w.table(t, l.root, "Node")
	for _, s := range l.root.children {
		if s.children != nil {
			w.table(t, s, s.path)
		}
	}
	if *update {
		if err := os.WriteFile("REFERENCE.md", []byte(w.b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if reference != w.b.String() {
		t.Error("REFERENCE.md does not say what the types say: go test ./conf -run Reference -update")
	}
	entries := Entries()
	if got, want := len(entries), len(l.root.leaves()); got != want {
		t.Errorf("Entries lists %d keys of %d", got, want)
	}
	for _, e := range entries {
		if strings.TrimSpace(e.Meaning) == "" || e.Type == "" || e.Allowed == "" {
			t.Errorf("%s: a column is empty: %+v", e.Key, e)
		}
	}
}

// realConfig is a configuration with real servers, which checks keys that the embedded mode does not look at.
func realConfig(t *testing.T) Config {
	t.Helper()
	loaded, err := Load(Sources{File: "serve.yaml", Env: secretsOfServe})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Config
}

var secretsOfServe = []string{
	"STOCKADE_STORE_DSN=stockade:secret@tcp(127.0.0.1:3306)/stockade", "STOCKADE_MQ_URL=amqp://guest:guest@127.0.0.1:5672/",
}

// writer makes the reference.
type writer struct {
	b              strings.Builder
	defaults, real *loader
}

// table writes the keys of a section; nested sections count as its own.
func (w *writer) table(t *testing.T, s *setting, title string) {
	t.Helper()
	fmt.Fprintf(&w.b, "\n## %s\n\n| key | type | default | allowed | meaning |\n| --- | --- | --- | --- | --- |\n", title)
	comments := commentsOf(t, s.value.Type())
	for _, c := range s.children {
		leaves := []*setting{c}
		if s.path == "" && c.children != nil {
			continue // a table of its own
		}
		if c.children != nil {
			leaves, comments = c.leaves(), merged(comments, commentsOf(t, c.value.Type()))
		}
		for _, leaf := range leaves {
			meaning := comments[leaf.field]
			if meaning == "" {
				t.Errorf("%s: the field has no comment", leaf.path)
			}
			may := allowed(w.defaults, s.path, leaf.path)
			if may == "" {
				may = allowed(w.real, s.path, leaf.path)
			}
			if may == "" {
				may = "any"
			}
			typ := typeName(leaf.value.Type())
			may = strings.TrimPrefix(may, typ+" ")
			if rest, found := strings.CutPrefix(may, "match "); found {
				may = "what matches " + rest
			}
			fmt.Fprintf(&w.b, "| `%s` | %s | %s | %s | %s |\n", leaf.path, typ, defaultOf(leaf), may, meaning)
		}
	}
}

func merged(a, b map[string]string) map[string]string {
	for k, v := range b {
		a[k] = v
	}
	return a
}

func defaultOf(leaf *setting) string {
	text := fmt.Sprint(leaf.shown())
	if list, ok := leaf.shown().([]string); ok {
		text = strings.Join(list, ", ")
	}
	if text == "" {
		return "empty"
	}
	return "`" + text + "`"
}

// allowed is what Validate says of an impossible value of a key, or "" when it accepts all that were tried.
func allowed(l *loader, section, path string) string {
	s, leaf := l.root, (*setting)(nil)
	if section != "" {
		s = l.root.child(section)
	}
	for _, candidate := range s.leaves() {
		if candidate.path == path {
			leaf = candidate
		}
	}
	if leaf.value.Kind() == reflect.Bool {
		return "true, false"
	}
	defer leaf.reset()
	for _, impossible := range impossibleValues(leaf) {
		leaf.value.Set(impossible)
		err := s.value.Addr().Interface().(validator).Validate()
		if err == nil {
			continue
		}
		if key, detail := l.blame(s, err); key == leaf {
			if _, after, found := strings.Cut(detail, "must "); found {
				detail, _, _ = strings.Cut(after, ": ") // behind it stands why this one is wrong
			}
			return strings.ReplaceAll(strings.TrimPrefix(detail, "be "), "|", `\|`)
		}
	}
	return ""
}

func impossibleValues(leaf *setting) []reflect.Value {
	t := leaf.value.Type()
	switch {
	case leaf.value.CanInt():
		return []reflect.Value{reflect.ValueOf(int64(-1 << (t.Bits() - 2))).Convert(t)}
	case leaf.value.CanFloat():
		return []reflect.Value{reflect.ValueOf(-1e30).Convert(t)}
	case t.Kind() == reflect.String:
		return []reflect.Value{reflect.ValueOf("\x00").Convert(t), reflect.ValueOf("").Convert(t)}
	case t.Kind() == reflect.Slice:
		return []reflect.Value{reflect.Zero(t), reflect.ValueOf([]string{"\x00"}).Convert(t)}
	}
	return nil
}

// commentsOf reads the comments of a struct's fields from its source, as sentences for people who do not read Go.
func commentsOf(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	fields := map[string]string{}
	st := structOf(t, typ)
	before := ""
	for _, f := range st.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		for _, name := range f.Names {
			if text == "" && strings.Contains(before, name.Name) {
				text = before // one comment for two fields
			}
			fields[name.Name] = sentence(typ, name.Name, text)
		}
		before = text
	}
	return fields
}

func structOf(t *testing.T, typ reflect.Type) *ast.StructType {
	t.Helper()
	dir := filepath.Join("..", strings.TrimPrefix(typ.PkgPath(), "stockade/"))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of %s in %s: %v", typ, dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.Name == typ.Name() {
					return ts.Type.(*ast.StructType)
				}
			}
		}
	}
	t.Fatalf("no declaration of %s in %s", typ, dir)
	return nil
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// sentence rewrites a Go comment: the field's own name in front goes, names of other fields become keys.
func sentence(typ reflect.Type, name, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	for _, lead := range []string{name + " is ", name + " are ", name + " "} {
		if rest, found := strings.CutPrefix(text, lead); found && !strings.HasPrefix(rest, "and ") && !strings.HasPrefix(rest, "of ") {
			text = rest
			break
		}
	}
	text = goName.ReplaceAllStringFunc(text, func(w string) string {
		if f, ok := typ.FieldByName(w); ok && strings.ContainsAny(w[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "" {
				key = camel(f.Name)
			}
			return "`" + key + "`"
		}
		return w
	})
	if text[0] != '`' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

func TestKeysKeepTheHouseRules(t *testing.T) {
	keyName := regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	seen := map[string]string{}
	cfg := Default()
	for _, leaf := range newLoader(&cfg).root.leaves() {
		for _, part := range strings.Split(leaf.path, ".") {
			if !keyName.MatchString(part) {
				t.Errorf("%s: %q is not camelCase", leaf.path, part)
			}
		}
		if other, twice := seen[leaf.env()]; twice {
			t.Errorf("%s and %s have the same variable %s", leaf.path, other, leaf.env())
		}
		seen[leaf.env()] = leaf.path
		if strings.HasPrefix(leaf.env(), "STOCKADE_TEST_") {
			t.Errorf("%s: STOCKADE_TEST_ belongs to the tests", leaf.path)
		}
	}
}

func TestShippedFilesLoad(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "*.yaml")
	if err != nil || !slices.Contains(files, "dev.yaml") || !slices.Contains(files, "serve.yaml") {
		t.Fatalf("got %v, %v; want dev.yaml and serve.yaml among them", files, err)
	}
	for _, name := range files {
		if _, err := Load(Sources{File: name, Env: secretsOfServe}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
