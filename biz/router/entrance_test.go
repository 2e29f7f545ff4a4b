package router

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

// TestClientAddress holds who is believed about the client's address, and who pays.
func TestClientAddress(t *testing.T) {
	gateway := []string{"127.0.0.1/32", "10.0.0.0/8"} // the test's own peer is 127.0.0.1
	for _, tc := range []struct {
		name    string
		trusted []string
		exempt  []string
		forward []string // X-Forwarded-For lines
		key     string   // the bucket that pays; empty: none
	}{
		{"a direct peer pays", nil, nil, nil, "127.0.0.1"},
		{"a direct peer is not believed", nil, nil, []string{"203.0.113.9"}, "127.0.0.1"},
		{"loopback is exempt", nil, []string{"127.0.0.0/8"}, []string{"203.0.113.9"}, ""},
		{"a gateway is believed", gateway, nil, []string{"203.0.113.9"}, "203.0.113.9"},
		{"a gateway alone never pays", gateway, nil, nil, ""},
		{"a client's own words are not believed", gateway, nil, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"gateways in a row", gateway, nil, []string{"1.1.1.1, 203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{"several lines are one list", gateway, nil, []string{"1.1.1.1, 203.0.113.9", "10.1.2.3, 10.1.2.4"}, "203.0.113.9"},
		{"only gateways", gateway, nil, []string{"10.1.2.3"}, ""},
		{"nonsense from a gateway", gateway, nil, []string{"203.0.113.9, unknown"}, ""},
		{"with a port", gateway, nil, []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6", gateway, nil, []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 with a port", gateway, nil, []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"IPv4 in IPv6 is IPv4", gateway, nil, []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"gateway in disguise", gateway, nil, []string{"203.0.113.9, ::ffff:10.1.2.3"}, "203.0.113.9"},
		{"an exempt client", gateway, []string{"203.0.113.0/24"}, []string{"203.0.113.9"}, ""},
		{"too many hops", gateway, nil, []string{"203.0.113.9" + strings.Repeat(", 10.0.0.1", maxHops)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNodeFor(t, buyersBehind(t, "192.0.2.0/24"), func(c *Config) { c.TrustedProxies, c.ExemptAddresses = tc.trusted, tc.exempt })
			var header []string
			for _, line := range tc.forward {
				header = append(header, "X-Forwarded-For: "+line)
			}
			n.buy(t, `{"quantity":1}`, header...)
			var want []netip.Addr
			if tc.key != "" {
				want = []netip.Addr{netip.MustParseAddr(tc.key)}
			}
			n.buckets.set(func() {
				if !slices.Equal(n.buckets.addresses, want) {
					t.Errorf("charged %v, want %v", n.buckets.addresses, want)
				}
			})
		})
	}
}

// buyersBehind believes this gateway alone, in the ways given, or in the default's.
func buyersBehind(t *testing.T, gateway string, ways ...string) *auth.Buyers {
	t.Helper()
	cfg := auth.DefaultConfig()
	cfg.Gateways, cfg.Audience, cfg.JWTSecrets = []string{gateway}, "stockade", []string{strings.Repeat("j", auth.MinSecret)}
	if ways != nil {
		cfg.Buyers = ways
	}
	return buyersOf(t, cfg)
}

// A gateway that names buyers sends the requests of all of them: the address bucket would turn most of them away. It is
// known by its connection, whatever it forwards, and only as long as it may name somebody.
func TestAGatewayOfBuyersPaysForNobody(t *testing.T) {
	here, elsewhere := "127.0.0.1/32", "192.0.2.0/24"
	for _, tc := range []struct {
		name    string
		buyers  *auth.Buyers
		trusted []string
		forward string
		key     string
	}{
		{"a gateway", buyersBehind(t, here), nil, "", ""},
		{"a gateway beside tokens", buyersBehind(t, here, auth.ByJWT, auth.ByHeader), nil, "", ""},
		{"its X-Forwarded-For counts only as a trusted proxy's", buyersBehind(t, here), nil, "203.0.113.9", ""},
		{"a gateway that is a trusted proxy too", buyersBehind(t, here), []string{here}, "203.0.113.9", "203.0.113.9"},
		{"no gateway", buyersBehind(t, elsewhere), nil, "", "127.0.0.1"},
		{"a gateway while the header is off", buyersBehind(t, here, auth.ByJWT), nil, "", "127.0.0.1"},
		{"a forwarded address is no peer", buyersBehind(t, elsewhere), []string{here}, "192.0.2.7", "192.0.2.7"},
		{"nobody is known", nil, nil, "", "127.0.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNodeFor(t, tc.buyers, func(c *Config) { c.TrustedProxies, c.ExemptAddresses = tc.trusted, nil })
			var header []string
			if tc.forward != "" {
				header = append(header, "X-Forwarded-For: "+tc.forward)
			}
			send(t, "GET", n.publicURL()+"/v1/skus/demo", "", header...)
			var want []netip.Addr
			if tc.key != "" {
				want = []netip.Addr{netip.MustParseAddr(tc.key)}
			}
			n.buckets.set(func() {
				if n.buckets.globals != 1 || !slices.Equal(n.buckets.addresses, want) {
					t.Errorf("charged %v, want %v; the node's bucket %d times", n.buckets.addresses, want, n.buckets.globals)
				}
			})
		})
	}
}

// someClient is behind a gateway of startNode that is a trusted proxy too, so that its address pays.
const someClient = "X-Forwarded-For: 203.0.113.9"

func behindGateway(c *Config) { c.TrustedProxies = []string{"127.0.0.1/32"} }

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*buckets)
	}{
		{"node", func(b *buckets) { b.noGlobal = true }},
		{"address", func(b *buckets) { b.noAddr = true }},
		{"buyer", func(b *buckets) { b.noBuyers = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, behindGateway)
			n.buckets.set(func() { tc.set(n.buckets) })
			got := n.buy(t, `{"quantity":1}`, someClient)
			if p := readProblem(t, got); got.status != 429 || p.Code != "RATE_LIMITED" || !strings.Contains(got.body, `"result":-3`) {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if wait := got.header.Get("Retry-After"); wait != "3" && wait != "4" {
				t.Errorf("Retry-After %q for 2.5 s", wait)
			}
			checkHeader(t, got, "RateLimit-Limit", "5")
			checkHeader(t, got, "RateLimit-Remaining", "0")
			checkHeader(t, got, "RateLimit-Reset", "1")
			if n.shop.calls.Load() != 0 {
				t.Error("a limited purchase reached the service")
			}
		})
	}
}

func TestReadsDoNotPayFromTheBuyersBucket(t *testing.T) {
	n := startNode(t, behindGateway)
	n.put(orderOf(sale.OrderQueued))
	for _, path := range []string{"/v1/skus/demo", "/v1/orders", "/v1/orders/" + someID.String()} {
		if got := send(t, "GET", n.publicURL()+path, "", "X-Buyer-Id: u1", someClient); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/openapi.yaml"} {
		send(t, "GET", n.publicURL()+path, "")
	}
	n.buckets.set(func() {
		if n.buckets.globals != 3 || len(n.buckets.addresses) != 3 || len(n.buckets.buyers) != 0 {
			t.Errorf("node %d, addresses %v, buyers %v", n.buckets.globals, n.buckets.addresses, n.buckets.buyers)
		}
	})
}

func TestAWinnersRetryIsNotCharged(t *testing.T) {
	n := startNode(t, nil)
	n.buckets.set(func() { n.buckets.won, n.buckets.noBuyers = sale.DeriveOrderID("demo", "u1", "k1"), true })
	if got := n.buy(t, `{"quantity":1}`, "Idempotency-Key: k1"); got.status != 409 || n.shop.calls.Load() != 1 {
		t.Errorf("a winner's retry: %d %s", got.status, got.body)
	}
	for _, other := range []string{"Idempotency-Key: k2", "X-Nothing: 1"} {
		if got := n.buy(t, `{"quantity":1}`, other); got.status != 429 {
			t.Errorf("%s: %d", other, got.status)
		}
	}
	n.buckets.set(func() {
		if !slices.Equal(n.buckets.buyers, []string{"u1", "u1"}) {
			t.Errorf("charged %v", n.buckets.buyers)
		}
	})
}
