package store

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

func files(t *testing.T) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	err := fs.WalkDir(sqlFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(sqlFiles, path)
		all[path] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStatements(t *testing.T) {
	for _, dialect := range []string{MySQL, SQLite} {
		all := files(t)
		s, err := loadStatements(all, dialect)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range s.files() {
			if strings.Contains(*text, "--") || strings.Contains(strings.ToUpper(*text), "RETURNING") {
				t.Errorf("%s %s: %s", dialect, name, *text)
			}
		}
		broken := map[string]func(fstest.MapFS){
			"missing":  func(f fstest.MapFS) { delete(f, "sql/"+dialect+"/outbox_insert.sql") },
			"empty":    func(f fstest.MapFS) { f["sql/"+dialect+"/ping.sql"] = &fstest.MapFile{Data: []byte("-- later\n")} },
			"leftover": func(f fstest.MapFS) { f["sql/"+dialect+"/old.sql"] = &fstest.MapFile{Data: []byte("SELECT 1")} },
		}
		for name, breaks := range broken {
			f := maps.Clone(all)
			breaks(f)
			if _, err := loadStatements(f, dialect); err == nil || !strings.Contains(err.Error(), dialect) {
				t.Errorf("%s, a %s file: %v", dialect, name, err)
			}
		}
	}
}

func TestPlaceholders(t *testing.T) {
	if got := inList("WHERE a = ? AND b IN (?)", 3); got != "WHERE a = ? AND b IN (?, ?, ?)" {
		t.Error(got)
	}
	if got := inList("b IN (?)", 1); got != "b IN (?)" {
		t.Error(got)
	}
	if got := bulk("INSERT INTO t (a, b)\nVALUES (?, ?)", 3); got != "INSERT INTO t (a, b)\nVALUES (?, ?), (?, ?), (?, ?)" {
		t.Error(got)
	}
	if got := pairList("IN ((?, ?)) FOR UPDATE", 2); got != "IN ((?, ?), (?, ?)) FOR UPDATE" {
		t.Error(got)
	}
	s, err := loadStatements(sqlFiles, MySQL)
	if err != nil {
		t.Fatal(err)
	}
	// A statement that takes a list has exactly one, or the wrong one would grow.
	for name, text := range s.files() {
		if n := strings.Count(*text, "IN (?)"); n > 1 {
			t.Errorf("%s has %d lists", name, n)
		}
		if n := strings.Count(*text, "IN ((?, ?))"); n > 1 {
			t.Errorf("%s has %d lists of pairs", name, n)
		}
	}
}
