package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// goFile is one parsed Go file.
type goFile struct {
	path string // below root, with slashes
	dir  string
	ast  *ast.File
	fset *token.FileSet
	text string
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at is the place of a node as file:line.
func (f goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// walk calls visit for every file that belongs to the repository: hidden folders and test data do not.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			visit(name)
		case name != "." && strings.HasPrefix(d.Name(), "."), d.Name() == "testdata":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles parses every Go file, whatever its build tags.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	walk(t, func(name string) {
		if path.Ext(name) != ".go" {
			return
		}
		f := goFile{path: name, dir: path.Dir(name), fset: token.NewFileSet(), text: read(t, name)}
		var err error
		if f.ast, err = parser.ParseFile(f.fset, name, f.text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	})
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}
