package shard

import (
	"fmt"
	"sync"

	"stockade/biz/sale"
)

// maxCachedSKUs bounds the cache of tags. A SKU's entry takes about 10 KiB and 150 µs to find again.
const maxCachedSKUs = 1024

// keys are the Redis keys of one share, all under its hash tag.
type keys struct {
	stock   string // hash: epoch, sealed, left, pending, initial, changes; while sealed also blank, before
	buyer   string // hash: buyer → "units:undecided"; undecided ones are among the units
	order   string // hash: raw order id → state, quantity, token, buyer; see parseEntry
	journal string // sorted set: raw ids of undecided orders, by the time of Redis in ms
	args    [4]any // the four as arguments of a script
}

func newKeys(prefix, sku string, share sale.Share) *keys {
	base := prefix + ":{" + Tag(sku, share) + "}:"
	k := &keys{stock: base + "stock", buyer: base + "buyer", order: base + "order", journal: base + "journal"}
	k.args = [4]any{k.stock, k.buyer, k.order, k.journal}
	return k
}

// hintChannel is the pub/sub channel of hints.
func hintChannel(prefix string) string { return prefix + ":hint" }

// keyring finds the keys of shares and remembers them.
type keyring struct {
	prefix string
	mu     sync.RWMutex
	skus   map[string]*[sale.MaxSlots + 1]*keys // the reserve last
}

func newKeyring(prefix string) *keyring {
	return &keyring{prefix: prefix, skus: map[string]*[sale.MaxSlots + 1]*keys{}}
}

// of returns a share's keys; a *sale.InputError when the SKU's id or the share is impossible.
func (r *keyring) of(sku string, share sale.Share) (*keys, error) {
	at := int(share)
	if share == sale.Reserve {
		at = sale.MaxSlots
	} else if share < 0 || share >= sale.MaxSlots {
		return nil, sale.BadInput("share", fmt.Sprintf("must be a slot from 0 to %d or the reserve", sale.MaxSlots-1))
	}
	r.mu.RLock()
	all := r.skus[sku]
	r.mu.RUnlock()
	if all == nil {
		if !sale.ValidSKUID(sku) {
			return nil, sale.BadInput("sku", "must match "+sale.SKUIDPattern)
		}
		all = r.add(sku)
	}
	return all[at], nil
}

func (r *keyring) add(sku string) *[sale.MaxSlots + 1]*keys {
	all := new([sale.MaxSlots + 1]*keys)
	for i := range sale.MaxSlots {
		all[i] = newKeys(r.prefix, sku, sale.Share(i))
	}
	all[sale.MaxSlots] = newKeys(r.prefix, sku, sale.Reserve)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.skus) >= maxCachedSKUs {
		clear(r.skus) // all are found again in little time; keeping their ages would cost every request
	}
	r.skus[sku] = all
	return all
}
