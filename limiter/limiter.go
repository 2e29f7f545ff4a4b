// Package limiter turns away who asks too often, before a request costs anything: token buckets for the node, for each
// client address and for each buyer, in memory that is fixed at the start.
package limiter

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// ipv6KeyBits is how much of an IPv6 address names its owner. A household or a rented server has a whole /64, so
// counting single addresses would give it a fresh bucket for each request.
const ipv6KeyBits = 64

// Limiter holds the buckets of one node. All methods may be called by many goroutines; none of them allocates, and a
// refused request takes no token.
type Limiter struct {
	now       func() time.Time
	start     time.Time
	seed      maphash.Seed // unknown to clients, so nobody can aim at another one's group
	global    quota
	globalTAT atomic.Int64
	addresses *table
	buyers    *table
}

// New returns a Limiter whose buckets are all full. now is the clock; it must not go back, as time.Now's monotonic
// reading does not. The error is the one of Config.Validate.
func New(cfg Config, now func() time.Time) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Limiter{
		now:    now,
		start:  now(),
		seed:   maphash.MakeSeed(),
		global: newQuota(cfg.GlobalPerSecond, cfg.GlobalBurst),
	}
	if q := newQuota(cfg.AddressPerSecond, cfg.AddressBurst); !q.off() {
		l.addresses = newTable(q, cfg.MaxAddresses)
	}
	if q := newQuota(cfg.BuyerPerSecond, cfg.BuyerBurst); !q.off() {
		l.buyers = newTable(q, cfg.MaxBuyers)
	}
	return l, nil
}

// Global asks the node's bucket.
func (l *Limiter) Global() Verdict {
	if l.global.off() {
		return Verdict{OK: true}
	}
	now := l.elapsed()
	for {
		tat := l.globalTAT.Load()
		next, v := l.global.take(tat, now)
		if !v.OK || l.globalTAT.CompareAndSwap(tat, next) {
			return v
		}
	}
}

// Address asks the bucket of a client address: of a whole /64 for IPv6. An IPv4 address has one bucket, mapped into
// IPv6 or not. Addresses that are not valid share one bucket. Which addresses are asked about at all is the caller's
// business.
func (l *Limiter) Address(addr netip.Addr) Verdict {
	if l.addresses == nil {
		return Verdict{OK: true}
	}
	raw := addr.As16()
	if !addr.Unmap().Is4() {
		clear(raw[ipv6KeyBits/8:])
	}
	return l.addresses.take(maphash.Bytes(l.seed, raw[:]), l.elapsed())
}

// Buyer asks the bucket of a buyer.
func (l *Limiter) Buyer(id string) Verdict {
	if l.buyers == nil {
		return Verdict{OK: true}
	}
	return l.buyers.take(maphash.String(l.seed, id), l.elapsed())
}

func (l *Limiter) elapsed() int64 { return int64(l.now().Sub(l.start)) }
