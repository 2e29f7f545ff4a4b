//go:build services

package proctest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Direction of data on a link.
type Direction string

// The directions.
const (
	Forth Direction = "upstream"   // from a node to the server
	Back  Direction = "downstream" // from the server to a node
)

// Trouble is what can be wrong with a link, in one direction.
type Trouble string

// The troubles.
const (
	Delay    Trouble = "delay"     // 400 ms, more or less 100
	Drop     Trouble = "drop"      // nothing arrives, connections stay
	Cut      Trouble = "cut"       // every connection is reset
	HalfOpen Trouble = "half-open" // the connection ends after a few bytes, and only one side knows
	Throttle Trouble = "throttle"  // 8 KiB a second
)

// Troubles lists all of them.
var Troubles = [...]Trouble{Delay, Drop, Cut, HalfOpen, Throttle}

// toxic is one effect of the proxy, by its name there.
type toxic struct {
	kind       string
	attributes map[string]int
}

func (t Trouble) toxics() []toxic {
	switch t {
	case Delay:
		return []toxic{{"latency", map[string]int{"latency": 400, "jitter": 100}}}
	case Drop:
		return []toxic{{"timeout", map[string]int{"timeout": 0}}}
	case Cut:
		return []toxic{{"reset_peer", map[string]int{"timeout": 0}}}
	case HalfOpen:
		return []toxic{
			{"limit_data", map[string]int{"bytes": 512}},
			{"slow_close", map[string]int{"delay": 600_000}},
		}
	case Throttle:
		return []toxic{{"bandwidth", map[string]int{"rate": 8}}}
	}
	return nil
}

// Link is the network between nodes and one server.
type Link struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
	on    []string // names of what is wrong
}

// NewLink starts a link to host:port. It ends with the test.
func NewLink(t *testing.T, upstream string) *Link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some toxics log by themselves
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{t: t, proxy: toxiproxy.NewProxy(server, upstream, "127.0.0.1:0", upstream)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// Addr is where nodes find the server, host:port.
func (l *Link) Addr() string { return l.proxy.Listen }

// Slow adds a delay in one direction, in milliseconds.
func (l *Link) Slow(d Direction, ms int) {
	l.t.Helper()
	l.add(d, toxic{"latency", map[string]int{"latency": ms}})
}

// Break gives the link a trouble, beside those that it has.
func (l *Link) Break(trouble Trouble, d Direction) {
	l.t.Helper()
	for _, x := range trouble.toxics() {
		l.add(d, x)
	}
}

func (l *Link) add(d Direction, x toxic) {
	l.t.Helper()
	name := x.kind + "-" + string(d)
	body, err := json.Marshal(map[string]any{
		"name": name, "type": x.kind, "stream": string(d), "toxicity": 1.0, "attributes": x.attributes,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(body)); err != nil {
		l.t.Fatalf("toxic %s: %v", name, err)
	}
	l.on = append(l.on, name)
}

// Heal takes all troubles away. Connections that they ended stay ended.
func (l *Link) Heal() {
	l.t.Helper()
	for _, name := range slices.Backward(l.on) {
		if err := l.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
			l.t.Errorf("toxic %s: %v", name, err)
		}
	}
	l.on = nil
}

// Lead makes another server, host:port, the one that the link leads to. Connections to the one before are closed.
func (l *Link) Lead(upstream string) {
	l.t.Helper()
	err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: upstream, Enabled: true})
	if err != nil {
		l.t.Fatal(err)
	}
}

// Down closes all connections and refuses new ones, until Up.
func (l *Link) Down() { l.proxy.Stop() }

// Up lets connections through again.
func (l *Link) Up() {
	l.t.Helper()
	if err := l.proxy.Start(); err != nil {
		l.t.Fatal(err)
	}
}
