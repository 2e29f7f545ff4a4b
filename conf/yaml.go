package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFileBytes bounds a configuration file; ours have a few kilobytes.
const maxFileBytes = 1 << 20

// yamlLine finds the position in an error of the YAML parser, whose errors carry it in their text only.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// readFile applies a YAML file to the settings.
func (l *loader) readFile(name string) {
	text, err := readBounded(name)
	if err != nil {
		l.report("", name, err.Error())
		return
	}
	l.readYAML(name, text)
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		// The path is already in front of the message.
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxFileBytes)
	}
	return text, nil
}

func (l *loader) readYAML(name string, text []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // an empty file changes nothing
	case err != nil:
		l.reportSyntax(name, err)
		return
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		l.report("", at(name, more.Line), "a second document; a configuration is one document")
	case !errors.Is(err, io.EOF):
		l.reportSyntax(name, err)
	}
	l.origins[""] = name
	l.section(name, at(name, 1), doc.Content[0], l.root)
}

func (l *loader) reportSyntax(name string, err error) {
	where := name
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		where = name + ":" + m[1]
	}
	l.report("", where, "not valid YAML: "+yamlLine.ReplaceAllString(err.Error(), ""))
}

// section applies a mapping to a section's children. where is the place of the section's own key.
func (l *loader) section(file, where string, n *yaml.Node, s *setting) {
	if isNull(n) {
		return // a section whose keys are all commented out
	}
	if n.Kind != yaml.MappingNode {
		l.report(s.path, where, "must be a section of keys, not "+nodeName(n))
		return
	}
	if s.path != "" {
		l.origins[s.path] = where
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		where, path := at(file, k.Line), joinPath(s.path, k.Value)
		child := s.child(k.Value)
		switch line, twice := first[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			l.report(s.path, where, "a key must be a name, not "+nodeName(k))
		case child == nil:
			l.report(path, where, "unknown key; "+l.suggest(s, k.Value))
		case twice:
			l.report(path, where, fmt.Sprintf("given twice, first on line %d", line))
		case child.children != nil:
			l.section(file, where, v, child)
		default:
			l.key(at(file, v.Line), v, child)
		}
		if _, twice := first[k.Value]; !twice {
			first[k.Value] = k.Line
		}
	}
}

// key applies one value. The YAML type must fit: a number where text is wanted is refused, because what YAML reads as
// a number (0123, 1e3) is seldom what its writer meant.
func (l *loader) key(where string, n *yaml.Node, s *setting) {
	if s.value.Kind() == reflect.Slice {
		l.list(where, n, s)
		return
	}
	if isNull(n) {
		l.report(s.path, where, "has no value; leave the key out for the default, or write \"\" for an empty text")
		return
	}
	if n.Kind != yaml.ScalarNode || !fits(n, s.value) {
		l.report(s.path, where, fmt.Sprintf("must be %s, not %s", typeName(s.value.Type()), nodeName(n)))
		return
	}
	l.set(s, where, n.Value)
}

func (l *loader) list(where string, n *yaml.Node, s *setting) {
	if n.Kind != yaml.SequenceNode {
		l.report(s.path, where, fmt.Sprintf("must be a list of texts, such as [a, b], not %s", nodeName(n)))
		return
	}
	items := reflect.MakeSlice(s.value.Type(), 0, len(n.Content))
	for i, item := range n.Content {
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" {
			l.report(s.path, where, fmt.Sprintf("item %d must be text, not %s", i+1, nodeName(item)))
			return
		}
		items = reflect.Append(items, reflect.ValueOf(item.Value).Convert(s.value.Type().Elem()))
	}
	s.value.Set(items)
	l.origins[s.path] = where
}

func fits(n *yaml.Node, v reflect.Value) bool {
	switch tag := n.ShortTag(); {
	case v.Kind() == reflect.Bool:
		return tag == "!!bool"
	case v.Kind() == reflect.String, strings.HasPrefix(typeName(v.Type()), "a duration"):
		return tag == "!!str"
	case v.CanFloat():
		return tag == "!!float" || tag == "!!int"
	default:
		return tag == "!!int"
	}
}

// nodeName says what a YAML node is, without its value, which may be a secret.
func nodeName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (aliases are not used here)"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int":
		return "a whole number (quote it if text is meant)"
	case "!!float":
		return "a number with a fraction or exponent"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	}
	return "a value tagged " + n.ShortTag()
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func at(file string, line int) string { return file + ":" + strconv.Itoa(line) }
