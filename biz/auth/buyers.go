package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// Buyers knows buyers in the ways that are switched on. Its methods may be called by many goroutines.
type Buyers struct {
	ways     string // for refusals
	header   bool
	gateways []netip.Prefix
	jwt      *tokenReader // nil: off
	signed   *signatures  // nil: off
}

// BuyerParts are what Buyers works with.
type BuyerParts struct {
	Now func() time.Time
	Log *slog.Logger
}

// NewBuyers takes a configuration that Validate has accepted, and reads jwksFile for the first time, when it has to be
// there and right. An error names the setting.
func NewBuyers(cfg Config, p BuyerParts) (*Buyers, error) {
	b := &Buyers{ways: strings.Join(cfg.Buyers, ", "), header: cfg.Takes(ByHeader)}
	for _, s := range cfg.Gateways {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, err
		}
		b.gateways = append(b.gateways, prefix.Masked())
	}
	if cfg.Takes(ByJWT) {
		var err error
		if b.jwt, err = newTokenReader(cfg, p); err != nil {
			return nil, err
		}
	}
	if cfg.Takes(BySigned) {
		b.signed = newSignatures(cfg, p.Now)
	}
	return b, nil
}

// Run follows jwksFile until ctx ends.
func (b *Buyers) Run(ctx context.Context) {
	if b.jwt == nil || b.jwt.published == nil {
		return
	}
	b.jwt.published.run(ctx)
}

// Gateway refuses what a peer says of a buyer unless it is a gateway. The peer is the other end of the TCP connection,
// an IPv4 address not written as IPv6. *Refusal.
func (b *Buyers) Gateway(peer netip.Addr) error {
	switch {
	case b.IsGateway(peer):
		return nil
	case b.header:
		return refuse(buyerHeader, "is believed only when a gateway sends it, and the peer is none; this node takes "+b.ways)
	case b.jwt != nil:
		return &Refusal{Header: tokenHeader, Detail: "a credential is needed; this node takes " + b.ways, Challenge: "Bearer"}
	}
	return refuse(SignatureHeader, "a credential is needed; this node takes "+b.ways)
}

// IsGateway tells whether Gateway believes a peer, without the words of a refusal.
func (b *Buyers) IsGateway(peer netip.Addr) bool {
	for i := range b.gateways {
		if b.header && b.gateways[i].Contains(peer) {
			return true
		}
	}
	return false
}

// Bearer returns the buyer whom an Authorization header names. *Refusal.
func (b *Buyers) Bearer(authorization string) (buyer string, err error) {
	if b.jwt == nil {
		return "", refuse(tokenHeader, "is not taken here; this node takes "+b.ways)
	}
	return b.jwt.buyer(authorization)
}

// ReadSignature reads a Stockade-Signature header and refuses it when its key is not known or its time is not now: what
// can be refused before a body is read. *Refusal.
func (b *Buyers) ReadSignature(header string) (Signature, error) {
	if b.signed == nil {
		return Signature{}, refuse(SignatureHeader, "is not taken here; this node takes "+b.ways)
	}
	return b.signed.read(header)
}

// Verify refuses a request that is not what was signed, or that came before. *Refusal, ErrNoncesFull. It changes what the
// node remembers: the same signature is good once.
func (b *Buyers) Verify(s Signature, r SignedRequest) error { return b.signed.verify(s, r) }
