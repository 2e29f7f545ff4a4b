package conf

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"stockade/biz/sale"
)

// word finds what may be the name of a setting in a message.
var word = regexp.MustCompile(`[A-Za-z][A-Za-z0-9.]*`)

// validator is what the packages' own Config types offer.
type validator interface{ Validate() error }

// validate asks each section, and the configuration as a whole, whether the values are possible.
func (l *loader) validate() {
	l.secrets = l.root.secrets()
	for _, s := range l.root.children {
		if s.children != nil {
			l.validateSection(s)
		}
	}
	l.validateSection(l.root) // last: what is out of range is at its default by now, and not reported twice
}

// validateSection reports every problem of a section, though Validate names only its first: a key that was reported
// goes back to its default and the section is asked again.
func (l *loader) validateSection(s *setting) {
	v, ok := s.value.Addr().Interface().(validator)
	if !ok {
		return
	}
	for range s.leaves() {
		moved := false
		for _, err := range unjoin(v.Validate()) {
			key, detail := l.blame(s, err)
			if key.secret {
				detail += "; it is best set as " + key.env()
			}
			l.report(key.path, l.nearestOrigin(key.path), scrub(detail, l.secrets))
			if key != s && !reflect.DeepEqual(key.value.Interface(), key.initial.Interface()) {
				key.reset()
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// blame finds the key that an error is about and what is left to say of it. Of several keys in one message it is the
// first that a source set: a default is not what the reader can change their mind about.
func (l *loader) blame(s *setting, err error) (*setting, string) {
	var input *sale.InputError
	if errors.As(err, &input) {
		if key := s.find(input.Field); key != nil {
			return key, input.Detail
		}
	}
	text := err.Error()
	key, detail := s, text
	for _, loc := range word.FindAllStringIndex(text, -1) {
		named := s.find(text[loc[0]:loc[1]])
		if named == nil {
			continue
		}
		_, set := l.origins[named.path]
		if key != s && !set {
			continue
		}
		// In front of the first name stands at most the section's; behind it, what is wrong.
		before := plain(strings.Trim(text[:loc[0]], ": "))
		if key == s && (before == "" || before == plain(s.path)) {
			detail = strings.TrimLeft(text[loc[1]:], ": ")
		} else {
			detail = text
		}
		key = named
		if set {
			break
		}
	}
	return key, detail
}

// find looks for the key below s that goes by that name: its key, its Go name, or its path, however capitalised.
func (s *setting) find(name string) *setting {
	name = plain(name)
	for _, leaf := range s.leaves() {
		below := strings.TrimPrefix(leaf.path, s.path)
		if name == plain(leaf.key) || name == plain(leaf.field) || name == plain(leaf.path) || name == plain(below) {
			return leaf
		}
	}
	return nil
}

// nearestOrigin is where a key was set; for one that was not, the section around it.
func (l *loader) nearestOrigin(path string) string {
	for p := path; p != ""; {
		if where, ok := l.origins[p]; ok {
			return where
		}
		i := strings.LastIndexByte(p, '.')
		p = p[:max(i, 0)]
	}
	if file, ok := l.origins[""]; ok {
		return file
	}
	return originDefault
}

// unjoin takes apart what errors.Join put together.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, unjoin(e)...)
		}
		return all
	}
	return []error{err}
}
