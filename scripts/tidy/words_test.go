package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasAComment(t *testing.T) {
	commented, where := map[string]bool{}, map[string]string{}
	for _, f := range goFiles(t) {
		if f.isTest() && strings.HasSuffix(f.ast.Name.Name, "_test") {
			continue
		}
		commented[f.dir] = commented[f.dir] || f.ast.Doc.Text() != ""
		if where[f.dir] == "" {
			where[f.dir] = f.path
		}
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("%s:1: package %s has no comment right above its package clause", where[dir], path.Base(dir))
		}
	}
}

func TestEveryExportedNameIsExplained(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.isTest() || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc.Text() == "" && exportedReceiver(d) && !selfEvident[d.Name.Name] {
					t.Errorf("%s: %s has no comment", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				unexplained(t, f, d)
			}
		}
	}
}

// selfEvident are methods that mean the same everywhere.
var selfEvident = map[string]bool{"String": true, "Error": true, "Unwrap": true, "Len": true, "Less": true, "Swap": true}

// unexplained reports types, constants and variables without a comment of their own, of their line, or of their group.
func unexplained(t *testing.T, f goFile, d *ast.GenDecl) {
	t.Helper()
	if d.Tok == token.IMPORT {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc.Text() == "" && d.Doc.Text() == "" {
				t.Errorf("%s: %s has no comment", f.at(s), s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" && d.Doc.Text() == "" {
					t.Errorf("%s: %s has no comment", f.at(s), name.Name)
				}
			}
		}
	}
}

// exportedReceiver tells whether a function can be reached from outside by its receiver.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := true
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			exported = x.IsExported()
			return false
		case *ast.IndexExpr:
			ast.Inspect(x.X, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					exported = id.IsExported()
				}
				return true
			})
			return false
		}
		return true
	})
	return exported
}

// banned calls, by package and function, with the reason.
var banned = []struct {
	pkg, fn     string
	testsOnly   bool // banned in tests
	programOnly bool // banned outside tests and cmd
	why         string
}{
	{pkg: "time", fn: "Sleep", testsOnly: true, why: "wait for a condition or a signal, not for a time that may be too short"},
	{pkg: "t", fn: "Skip", testsOnly: true, why: "what a test needs and does not find is a failure"},
	{pkg: "t", fn: "Skipf", testsOnly: true, why: "what a test needs and does not find is a failure"},
	{pkg: "t", fn: "SkipNow", testsOnly: true, why: "what a test needs and does not find is a failure"},
	{pkg: "b", fn: "Skip", testsOnly: true, why: "what a benchmark needs and does not find is a failure"},
	{pkg: "fmt", fn: "Print", programOnly: true, why: "log, or return it"},
	{pkg: "fmt", fn: "Println", programOnly: true, why: "log, or return it"},
	{pkg: "fmt", fn: "Printf", programOnly: true, why: "log, or return it"},
	{pkg: "os", fn: "Exit", programOnly: true, why: "only main ends the process"},
	{pkg: "log", fn: "Fatal", programOnly: true, why: "only main ends the process"},
	{pkg: "log", fn: "Fatalf", programOnly: true, why: "only main ends the process"},
	{pkg: "log", fn: "Print", programOnly: true, why: "use the slog.Logger that was handed over"},
	{pkg: "log", fn: "Printf", programOnly: true, why: "use the slog.Logger that was handed over"},
	{pkg: "log", fn: "Println", programOnly: true, why: "use the slog.Logger that was handed over"},
}

func TestBannedCalls(t *testing.T) {
	for _, f := range goFiles(t) {
		isMain := f.ast.Name.Name == "main" || within(f.dir, "scripts")
		loops := loopsOf(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, b := range banned {
				if pkg.Name != b.pkg || sel.Sel.Name != b.fn || (b.testsOnly && !testCode(f)) || (b.programOnly && (isMain || testCode(f))) {
					continue
				}
				if b.fn == "Sleep" && inside(loops, sel) {
					continue // a step of polling
				}
				t.Errorf("%s: %s.%s: %s", f.at(sel), b.pkg, b.fn, b.why)
			}
			return true
		})
	}
}

func loopsOf(f goFile) []*ast.ForStmt {
	var loops []*ast.ForStmt
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if loop, ok := n.(*ast.ForStmt); ok {
			loops = append(loops, loop)
		}
		return true
	})
	return loops
}

func inside(loops []*ast.ForStmt, n ast.Node) bool {
	return slices.ContainsFunc(loops, func(l *ast.ForStmt) bool { return l.Pos() <= n.Pos() && n.End() <= l.End() })
}

// testCode tells test files and the shared suites (storetest, mqtest, shardtest) from programs.
func testCode(f goFile) bool { return f.isTest() || strings.HasSuffix(f.dir, "test") }

// Package-level variables are constants in all but name: nothing writes them after their declaration.
func TestNoPackageLevelStateIsWritten(t *testing.T) {
	vars := map[string]map[string]bool{} // folder → names
	files := goFiles(t)
	for _, f := range files {
		if testCode(f) {
			continue
		}
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if vars[f.dir] == nil {
						vars[f.dir] = map[string]bool{}
					}
					vars[f.dir][name.Name] = name.Name != "_"
				}
			}
		}
	}
	for _, f := range files {
		if testCode(f) {
			continue
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				writes(t, f, fn, vars[f.dir])
			}
		}
	}
}

// writes reports assignments in fn to package-level variables that nothing in fn hides.
func writes(t *testing.T, f goFile, fn *ast.FuncDecl, vars map[string]bool) {
	t.Helper()
	local := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			for _, name := range x.Names {
				local[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range x.Names {
				local[name.Name] = true
			}
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				for _, e := range x.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						local[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{x.Key, x.Value} {
				if id, ok := e.(*ast.Ident); ok {
					local[id.Name] = true
				}
			}
		}
		return true
	})
	ast.Inspect(fn, func(n ast.Node) bool {
		var targets []ast.Expr
		switch x := n.(type) {
		case *ast.AssignStmt:
			targets = x.Lhs
		case *ast.IncDecStmt:
			targets = []ast.Expr{x.X}
		}
		for _, e := range targets {
			if id := base(e); id != nil && vars[id.Name] && !local[id.Name] {
				t.Errorf("%s: %s changes the package-level variable %s", f.at(e), fn.Name.Name, id.Name)
			}
		}
		return true
	})
}

// base is the variable behind x, x.f, x[i] and *x.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
