package router

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"stockade/biz/handler"
)

// Config is the HTTP side of a node. Times are milliseconds.
type Config struct {
	// Public is the address of the buyers' listener, host:port. Port 0 takes a free one.
	Public string `yaml:"public"`
	// Admin is the address of the operators' listener.
	Admin string `yaml:"admin"`
	// TLSCertFile is the certificate of the buyers' listener, in PEM with its chain. It and its key are read again when they
	// change. Empty: no TLS.
	TLSCertFile string `yaml:"tlsCertFile"`
	// TLSKeyFile is the key of TLSCertFile, in PEM.
	TLSKeyFile string `yaml:"tlsKeyFile"`
	// AdminTLSCertFile is TLSCertFile of the operators' listener.
	AdminTLSCertFile string `yaml:"adminTlsCertFile"`
	// AdminTLSKeyFile is the key of AdminTLSCertFile.
	AdminTLSKeyFile string `yaml:"adminTlsKeyFile"`
	// TrustedProxies are the gateways, as CIDRs, whose X-Forwarded-For is believed.
	TrustedProxies []string `yaml:"trustedProxies"`
	// ExemptAddresses are CIDRs that no address bucket counts. Peers in auth.gateways need not be among them as long as
	// auth.buyers has header.
	ExemptAddresses []string `yaml:"exemptAddresses"`
	// CORSOrigins are the origins whose pages may call the public API, such as https://shop.example. None: CORS is off.
	CORSOrigins []string `yaml:"corsOrigins"`
	// PaymentSecrets check the signatures of payment callbacks: whsec_ and the base64 of 24 to 64 bytes each, as the
	// payment provider shows it. Two while one is rotated. None: POST /v1/payments is PAYMENTS_DISABLED.
	PaymentSecrets []string `yaml:"paymentSecrets" secret:"true"`

	// ReadTimeoutMs is how long a started request may be silent before the connection closes; with TLS, how long the
	// handshake and the first request may take together, and each request after them.
	ReadTimeoutMs int `yaml:"readTimeoutMs"`
	// WriteTimeoutMs is how long a client may refuse to take an answer.
	WriteTimeoutMs int `yaml:"writeTimeoutMs"`
	// IdleTimeoutMs is how long a connection may wait for its next request.
	IdleTimeoutMs int `yaml:"idleTimeoutMs"`
	// DrainTimeoutMs is how long a stop waits for requests in flight.
	DrainTimeoutMs int `yaml:"drainTimeoutMs"`

	// MaxStreams is how many event streams this node serves at a time; each reads its order every StreamPollMs.
	MaxStreams int `yaml:"maxStreams"`
	// StreamPollMs is the time between two looks at a stream's order.
	StreamPollMs int `yaml:"streamPollMs"`
	// StreamHeartbeatMs is the longest silence on a stream.
	StreamHeartbeatMs int `yaml:"streamHeartbeatMs"`
	// StreamMaxAgeMs is the age at which a stream ends and its client connects again.
	StreamMaxAgeMs int `yaml:"streamMaxAgeMs"`

	// LogRefusalsEvery is how many refusals the access log counts for one that it writes.
	LogRefusalsEvery int `yaml:"logRefusalsEvery"`
}

// DefaultConfig returns the settings of a node that nothing but this machine can reach.
func DefaultConfig() Config {
	return Config{
		Public:            "127.0.0.1:8080",
		Admin:             "127.0.0.1:8081",
		ExemptAddresses:   []string{"127.0.0.0/8", "::1/128"},
		ReadTimeoutMs:     10_000,
		WriteTimeoutMs:    10_000,
		IdleTimeoutMs:     60_000,
		DrainTimeoutMs:    10_000,
		MaxStreams:        1000,
		StreamPollMs:      1000,
		StreamHeartbeatMs: 15_000,
		StreamMaxAgeMs:    600_000,
		LogRefusalsEvery:  1000,
	}
}

// Validate returns an error naming the first setting that cannot be used, and what is allowed.
func (c Config) Validate() error {
	for _, a := range []struct{ name, addr string }{{"public", c.Public}, {"admin", c.Admin}} {
		if err := validAddress(a.addr); err != nil {
			return fmt.Errorf("%s: %q must be host:port with a port from 0 to 65535: %w", a.name, a.addr, err)
		}
	}
	for _, pair := range []struct{ name, cert, other, key string }{
		{"tlsCertFile", c.TLSCertFile, "tlsKeyFile", c.TLSKeyFile},
		{"adminTlsCertFile", c.AdminTLSCertFile, "adminTlsKeyFile", c.AdminTLSKeyFile},
	} {
		if (pair.cert == "") != (pair.key == "") {
			return fmt.Errorf("%s: must be given together with %s, or neither", pair.name, pair.other)
		}
	}
	for _, s := range []struct {
		name          string
		value, lo, hi int
	}{
		{"readTimeoutMs", c.ReadTimeoutMs, 100, 600_000},
		{"writeTimeoutMs", c.WriteTimeoutMs, 100, 600_000},
		{"idleTimeoutMs", c.IdleTimeoutMs, 100, 600_000},
		{"drainTimeoutMs", c.DrainTimeoutMs, 10, 600_000},
		{"maxStreams", c.MaxStreams, 0, 100_000},
		{"streamPollMs", c.StreamPollMs, 10, 60_000},
		{"streamHeartbeatMs", c.StreamHeartbeatMs, 10, 60_000},
		{"streamMaxAgeMs", c.StreamMaxAgeMs, 10, 3_600_000},
		{"logRefusalsEvery", c.LogRefusalsEvery, 1, 1_000_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return fmt.Errorf("%s: %d is out of range: must be from %d to %d", s.name, s.value, s.lo, s.hi)
		}
	}
	if _, err := prefixes("trustedProxies", c.TrustedProxies); err != nil {
		return err
	}
	if _, err := prefixes("exemptAddresses", c.ExemptAddresses); err != nil {
		return err
	}
	if _, err := handler.NewWebhooks(c.PaymentSecrets); err != nil {
		return fmt.Errorf("paymentSecrets: %w", err)
	}
	for _, origin := range c.CORSOrigins {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return fmt.Errorf("corsOrigins: %q must be an origin such as https://shop.example, without a path", origin)
		}
	}
	return nil
}

// Loopback tells whether only this machine can reach a listener on addr.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.Unmap().IsLoopback())
}

// prefixes reads a list of CIDRs; a single address is a prefix of its own length.
func prefixes(name string, list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, addrErr := netip.ParseAddr(s)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%s: %q must be a CIDR such as 10.0.0.0/8 or fd00::/8", name, s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%s: %q must be written as an IPv4 CIDR", name, s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
