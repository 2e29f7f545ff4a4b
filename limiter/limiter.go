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
	full      rates
	current   atomic.Pointer[rates] // full, scaled
	globalTAT atomic.Int64
	addresses *table // nil: off
	buyers    *table // nil: off
}

// rates are the quotas of all buckets, and the percentage they are scaled by.
type rates struct {
	global, address, buyer quota
	percent                int
}

// fullScale is the percentage at which buckets let through what is configured.
const fullScale = 100

// New returns a Limiter whose buckets are all full. now is the clock; it must not go back, as time.Now's monotonic
// reading does not. The error is the one of Config.Validate.
func New(cfg Config, now func() time.Time) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Limiter{
		now:   now,
		start: now(),
		seed:  maphash.MakeSeed(),
		full: rates{
			global:  newQuota(cfg.GlobalPerSecond, cfg.GlobalBurst),
			address: newQuota(cfg.AddressPerSecond, cfg.AddressBurst),
			buyer:   newQuota(cfg.BuyerPerSecond, cfg.BuyerBurst),
		},
	}
	if !l.full.address.off() {
		l.addresses = newTable(cfg.MaxAddresses)
	}
	if !l.full.buyer.off() {
		l.buyers = newTable(cfg.MaxBuyers)
	}
	l.SetScale(fullScale)
	return l, nil
}

// SetScale has every bucket let through only so many percent of its rate, from 0, which refuses everything that asks any
// bucket, to 100. Other numbers count as the nearest of these.
func (l *Limiter) SetScale(percent int) {
	percent = min(max(percent, 0), fullScale)
	if now := l.current.Load(); now != nil && now.percent == percent {
		return
	}
	l.current.Store(&rates{
		global: l.full.global.scaled(percent), address: l.full.address.scaled(percent), buyer: l.full.buyer.scaled(percent),
		percent: percent,
	})
}

// Global asks the node's bucket.
func (l *Limiter) Global() Verdict {
	q := &l.current.Load().global
	if q.off() {
		return Verdict{OK: true}
	}
	now := l.elapsed()
	for {
		tat := l.globalTAT.Load()
		next, v := q.take(tat, now)
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
	return l.addresses.take(&l.current.Load().address, maphash.Bytes(l.seed, raw[:]), l.elapsed())
}

// Buyer asks the bucket of a buyer.
func (l *Limiter) Buyer(id string) Verdict {
	if l.buyers == nil {
		return Verdict{OK: true}
	}
	return l.buyers.take(&l.current.Load().buyer, maphash.String(l.seed, id), l.elapsed())
}

func (l *Limiter) elapsed() int64 { return int64(l.now().Sub(l.start)) }
