package conf

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
)

// Loaded is a valid configuration that knows where its values came from.
type Loaded struct {
	Config  Config
	origins map[string]string
}

// Load reads the configuration from its sources, the later ones winning: defaults, file, environment, flags. The
// error is of type Problems and lists everything that is wrong.
func Load(src Sources) (Loaded, error) {
	cfg := Default()
	l := newLoader(&cfg)
	if err := l.load(src); err != nil {
		return Loaded{}, err
	}
	return Loaded{Config: cfg, origins: l.origins}, nil
}

// Value is one key as it may be shown to anybody.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`            // string, bool, number or []string; secrets are masked
	Origin string `json:"origin,omitempty"` // "default", file:line, the environment variable, or --set
}

// Values lists every key in the order of the reference, secrets masked.
func (l Loaded) Values() []Value {
	values := l.Config.values()
	for i := range values {
		if values[i].Origin = l.origins[values[i].Key]; values[i].Origin == "" {
			values[i].Origin = originDefault
		}
	}
	return values
}

func (c Config) values() []Value {
	var values []Value
	for _, leaf := range c.tree().leaves() {
		values = append(values, Value{Key: leaf.path, Value: leaf.shown()})
	}
	return values
}

// tree lays out a copy, so that c stays as it is.
func (c Config) tree() *setting { return treeOf(reflect.ValueOf(&c).Elem(), "") }

// String lists key=value pairs, secrets masked.
func (c Config) String() string {
	pairs := []string{}
	for _, v := range c.values() {
		pairs = append(pairs, fmt.Sprintf("%s=%v", v.Key, v.Value))
	}
	return strings.Join(pairs, " ")
}

// Format prints String for every verb, so that %+v and %#v show no secret either.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue groups the keys for slog, secrets masked.
func (c Config) LogValue() slog.Value {
	attrs := []slog.Attr{}
	for _, v := range c.values() {
		attrs = append(attrs, slog.Any(v.Key, v.Value))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON writes one object of dotted keys, secrets masked. It cannot be read back.
func (c Config) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for _, v := range c.values() {
		object[v.Key] = v.Value
	}
	return json.Marshal(object)
}

// Scrub masks the configuration's secrets in a message that somebody else wrote, such as the error of a driver that
// repeats its address.
func (c Config) Scrub(message string) string { return scrub(message, c.tree().secrets()) }

// String is the configuration's, without origins.
func (l Loaded) String() string { return l.Config.String() }

// Format prints String for every verb.
func (l Loaded) Format(f fmt.State, _ rune) { fmt.Fprint(f, l.String()) }

// LogValue is the configuration's.
func (l Loaded) LogValue() slog.Value { return l.Config.LogValue() }

// MarshalJSON lists the values with their origins, secrets masked.
func (l Loaded) MarshalJSON() ([]byte, error) { return json.Marshal(l.Values()) }
