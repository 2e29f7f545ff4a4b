// Package auth tells who makes a request: buyers by what they show to the public API, operators by the tokens of a file.
package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"stockade/biz/sale"
)

// Ways in which a buyer may be known.
const (
	ByHeader = "header" // X-Buyer-Id of a gateway
	ByJWT    = "jwt"    // Authorization: Bearer
	BySigned = "signed" // Stockade-Signature of another server
)

// Ways lists them all.
var Ways = [...]string{ByHeader, ByJWT, BySigned}

// MinSecret is the least length of a secret, in bytes.
const MinSecret = 32

const maxSecrets = 2 // one is being rotated

// Config says whom the service believes. Times are milliseconds.
type Config struct {
	// Buyers are the ways in which a buyer may be known: header (a gateway's X-Buyer-Id), jwt (Authorization: Bearer),
	// signed (Stockade-Signature of another server).
	Buyers []string `yaml:"buyers"`
	// Gateways are the CIDRs of the peers whose X-Buyer-Id is believed. What X-Forwarded-For says does not count.
	Gateways []string `yaml:"gateways"`

	// JWTSecrets check HS256 tokens, at least 32 bytes each; two while one is rotated.
	JWTSecrets []string `yaml:"jwtSecrets" secret:"true"`
	// JWKSFile holds the public keys of RS256 and EdDSA tokens; it is looked at once a second.
	JWKSFile string `yaml:"jwksFile"`
	// Issuer is what the claim iss must be; empty: anything.
	Issuer string `yaml:"issuer"`
	// Audience is what the claim aud must name; required for jwt.
	Audience string `yaml:"audience"`
	// LeewayMs is how far the clocks of issuers may be off.
	LeewayMs int `yaml:"leewayMs"`

	// Signers are the servers that may sign requests, as id:secret with a secret of at least 32 bytes. A secret is rotated
	// by adding a signer with another id.
	Signers []string `yaml:"signers" secret:"true"`
	// SignatureWindowMs is how old a signature may be.
	SignatureWindowMs int `yaml:"signatureWindowMs"`
	// MaxNonces is how many signatures of the window a node remembers, to refuse those that come again.
	MaxNonces int `yaml:"maxNonces"`

	// PurchaseTokenSecrets sign purchase tokens, at least 32 bytes each, the newest first; two while one is rotated. All
	// nodes need the same.
	PurchaseTokenSecrets []string `yaml:"purchaseTokenSecrets" secret:"true"`
	// PurchaseTokenMs is how long a purchase token can be used.
	PurchaseTokenMs int `yaml:"purchaseTokenMs"`

	// AdminTokensFile is the file of the operators' tokens, as `stockade token create` writes it; it is looked at once a
	// second.
	AdminTokensFile string `yaml:"adminTokensFile"`
}

// DefaultConfig believes gateways on this machine, and nobody else.
func DefaultConfig() Config {
	return Config{
		Buyers:            []string{ByHeader},
		Gateways:          []string{"127.0.0.0/8", "::1/128"},
		LeewayMs:          5000,
		SignatureWindowMs: 30_000,
		MaxNonces:         1 << 20,
		PurchaseTokenMs:   120_000,
	}
}

// Validate returns a *sale.InputError for the first setting that cannot be used.
func (c Config) Validate() error {
	if len(c.Buyers) == 0 {
		return sale.BadInput("buyers", "must name at least one of "+strings.Join(Ways[:], ", "))
	}
	for _, way := range c.Buyers {
		if !slices.Contains(Ways[:], way) {
			return sale.BadInput("buyers", "must be of "+strings.Join(Ways[:], ", "))
		}
	}
	for _, s := range c.Gateways {
		if p, err := netip.ParsePrefix(s); err != nil || p.Addr().Is4In6() {
			return sale.BadInput("gateways", fmt.Sprintf("%q must be a CIDR such as 10.0.0.0/8 or fd00::/8", s))
		}
	}
	for _, n := range []struct {
		name          string
		value, lo, hi int
	}{
		{"leewayMs", c.LeewayMs, 0, 60_000},
		{"signatureWindowMs", c.SignatureWindowMs, 1000, 600_000},
		{"maxNonces", c.MaxNonces, 1000, 1 << 24},
		{"purchaseTokenMs", c.PurchaseTokenMs, 1000, 3_600_000},
	} {
		if n.value < n.lo || n.value > n.hi {
			return sale.BadInput(n.name, fmt.Sprintf("must be a whole number from %d to %d", n.lo, n.hi))
		}
	}
	for _, f := range []struct{ name, path string }{{"jwksFile", c.JWKSFile}, {"adminTokensFile", c.AdminTokensFile}} {
		if strings.ContainsRune(f.path, 0) {
			return sale.BadInput(f.name, "must be a path")
		}
	}
	return c.validateSecrets()
}

func (c Config) validateSecrets() error {
	for _, s := range []struct {
		name string
		all  []string
	}{{"jwtSecrets", c.JWTSecrets}, {"purchaseTokenSecrets", c.PurchaseTokenSecrets}} {
		if len(s.all) > maxSecrets {
			return sale.BadInput(s.name, fmt.Sprintf("must be at most %d", maxSecrets))
		}
		for i, secret := range s.all {
			if len(secret) < MinSecret {
				return sale.BadInput(s.name, fmt.Sprintf("number %d must have at least %d bytes", i+1, MinSecret))
			}
		}
	}
	return validSigners(c.Signers)
}

// PurchaseTokenLife is PurchaseTokenMs.
func (c Config) PurchaseTokenLife() time.Duration {
	return time.Duration(c.PurchaseTokenMs) * time.Millisecond
}

// Takes tells whether buyers may be known in this way.
func (c Config) Takes(way string) bool { return slices.Contains(c.Buyers, way) }
