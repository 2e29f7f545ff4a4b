package conf

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// envPrefix starts the name of every environment variable of ours.
const envPrefix = "STOCKADE_"

// setting is one place in the configuration: a section with children, or a key with a value.
type setting struct {
	key      string // last part of the path
	path     string // dotted, "" for the root
	field    string // Go name, which an error of Validate may use
	value    reflect.Value
	initial  reflect.Value // copy of value before any source was read
	secret   bool
	children []*setting // nil for a key
}

// treeOf lays out the settings of an addressable struct. Fields tagged `yaml:"-"` and functions are no settings.
func treeOf(v reflect.Value, path string) *setting {
	root := &setting{path: path, value: v, initial: copyOf(v), children: []*setting{}}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" || f.Type.Kind() == reflect.Func || f.Type.Kind() == reflect.Interface {
			continue
		}
		if name == "" {
			name = camel(f.Name)
		}
		full := joinPath(path, name)
		if f.Type.Kind() == reflect.Struct {
			child := treeOf(v.Field(i), full)
			child.key, child.field = name, f.Name
			root.children = append(root.children, child)
			continue
		}
		if typeName(f.Type) == "" {
			panic(fmt.Sprintf("conf: %s has type %s, which no source can set", full, f.Type))
		}
		root.children = append(root.children, &setting{
			key: name, path: full, field: f.Name, value: v.Field(i), initial: copyOf(v.Field(i)),
			secret: f.Tag.Get("secret") != "" || secretName(name),
		})
	}
	return root
}

// leaves lists the keys below s in the order of the struct.
func (s *setting) leaves() []*setting {
	if s.children == nil {
		return []*setting{s}
	}
	var all []*setting
	for _, c := range s.children {
		all = append(all, c.leaves()...)
	}
	return all
}

func (s *setting) child(key string) *setting {
	for _, c := range s.children {
		if c.key == key {
			return c
		}
	}
	return nil
}

// env is the name of the environment variable that overrides the key: shard.laneQueue is STOCKADE_SHARD_LANE_QUEUE.
func (s *setting) env() string {
	var b strings.Builder
	b.WriteString(envPrefix)
	lower := false
	for _, r := range s.path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && lower:
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
	}
	return b.String()
}

// reset takes back what the sources said.
func (s *setting) reset() { s.value.Set(s.initial) }

// camel turns a Go name into a key: DSN is dsn, MaxIdle is maxIdle, URLPrefix is urlPrefix.
func camel(name string) string {
	runes := []rune(name)
	for i := range runes {
		wordEnds := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if !unicode.IsUpper(runes[i]) || (i > 0 && wordEnds) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}
