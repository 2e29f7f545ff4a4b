package conf

import (
	"reflect"
	"slices"
	"strings"
)

// Sources are the places that settings come from, weakest first: built-in defaults, then these.
type Sources struct {
	File string   // YAML; empty: none
	Env  []string // NAME=value, as os.Environ gives them
	// NotOurs are variables that start with STOCKADE_ and mean something to others; a trailing * takes any ending.
	NotOurs []string
	Set     []string // path=value, from --set
}

// originDefault is the origin of a value that no source set.
const originDefault = "default"

// loader applies sources to a tree of settings and collects what is wrong.
type loader struct {
	root     *setting
	origins  map[string]string // dotted path → where it was set last
	problems Problems
	secrets  []string // what no message may show
}

func newLoader(target any) *loader {
	return &loader{root: treeOf(reflect.ValueOf(target).Elem(), ""), origins: map[string]string{}}
}

// load applies the sources to a pointer to a struct that holds the defaults, validates, and tells where each value
// came from.
func (l *loader) load(src Sources) error {
	if src.File != "" {
		l.readFile(src.File)
	}
	l.readEnv(src.Env, src.NotOurs)
	l.readFlags(src.Set)
	l.validate()
	if len(l.problems) > 0 {
		return l.problems
	}
	return nil
}

func (l *loader) report(path, where, detail string) {
	p := Problem{Key: path, Where: where, Detail: detail}
	if !slices.Contains(l.problems, p) {
		l.problems = append(l.problems, p)
	}
}

// set gives a key its written value, or reports that it does not fit and leaves the key as it was.
func (l *loader) set(s *setting, where, text string) {
	before := copyOf(s.value)
	if err := setText(s.value, text); err != nil {
		s.value.Set(before)
		l.report(s.path, where, err.Error())
		return
	}
	l.origins[s.path] = where
}

func (l *loader) origin(path string) string {
	if where, ok := l.origins[path]; ok && path != "" {
		return where
	}
	return originDefault
}

// readEnv applies the variables that start with STOCKADE_. One that names no key is refused: a typing error in a
// variable would otherwise leave the default in force unseen.
func (l *loader) readEnv(env, notOurs []string) {
	byName, names := map[string]*setting{}, []string{}
	for _, leaf := range l.root.leaves() {
		byName[leaf.env()] = leaf
		names = append(names, leaf.env())
	}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || matches(name, notOurs) {
			continue
		}
		leaf := byName[name]
		if leaf == nil {
			l.report("", name, "unknown variable; "+didYouMean(nearest(name, names), "`stockade config reference` lists them all"))
			continue
		}
		l.set(leaf, name, value)
	}
}

// readFlags applies path=value pairs.
func (l *loader) readFlags(pairs []string) {
	for _, pair := range pairs {
		path, value, found := strings.Cut(pair, "=")
		where := "--set"
		if !found {
			l.report("", where, "must look like key=value, such as log.level=debug")
			continue
		}
		leaf, paths := (*setting)(nil), []string{}
		for _, candidate := range l.root.leaves() {
			paths = append(paths, candidate.path)
			if candidate.path == path {
				leaf = candidate
			}
		}
		if leaf == nil {
			l.report(path, where, "unknown key; "+didYouMean(nearest(path, paths), "`stockade config reference` lists them all"))
			continue
		}
		l.set(leaf, where, value)
	}
}

// suggest says what an unknown key of a section was meant to be, or else what the section may hold.
func (l *loader) suggest(s *setting, key string) string {
	keys := make([]string, 0, len(s.children))
	for _, c := range s.children {
		keys = append(keys, c.key)
	}
	return didYouMean(nearest(key, keys), "allowed here: "+strings.Join(keys, ", "))
}

func didYouMean(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return "did you mean " + name + "?"
}

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if prefix, any := strings.CutSuffix(p, "*"); name == p || (any && strings.HasPrefix(name, prefix)) {
			return true
		}
	}
	return false
}
