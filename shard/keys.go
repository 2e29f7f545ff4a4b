package shard

import (
	"fmt"
	"strings"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"stockade/biz/sale"
)

// maxCachedSKUs bounds the cache of tags. A share that is in use takes about 500 bytes and 4 µs to find again, a SKU 33
// times as much at most.
const maxCachedSKUs = 16_384

// keys are the Redis keys of one share, all under its hash tag.
type keys struct {
	stock   string // hash: epoch, sealed, left, pending, initial, changes, and short when there is any; while sealed also blank, before
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

// keyring finds the keys of shares and remembers those of the SKUs that were asked for last.
type keyring struct {
	prefix string
	skus   *lru.Cache[string, *skuKeys]
}

// skuKeys are the keys of one SKU's shares, made when they are asked for; the reserve comes last.
type skuKeys [sale.MaxSlots + 1]atomic.Pointer[keys]

// newKeyring remembers as many SKUs as size, which is positive.
func newKeyring(prefix string, size int) *keyring {
	skus, err := lru.New[string, *skuKeys](size)
	if err != nil {
		panic(err) // only a size that is not positive can do this
	}
	return &keyring{prefix: prefix, skus: skus}
}

// of returns a share's keys; a *sale.InputError when the SKU's id or the share is impossible.
func (r *keyring) of(sku string, share sale.Share) (*keys, error) {
	at := int(share)
	if share == sale.Reserve {
		at = sale.MaxSlots
	} else if share < 0 || share >= sale.MaxSlots {
		return nil, sale.BadInput("share", fmt.Sprintf("must be a slot from 0 to %d or the reserve", sale.MaxSlots-1))
	}
	all, found := r.skus.Get(sku)
	if !found {
		if !sale.ValidSKUID(sku) {
			return nil, sale.BadInput("sku", "must match "+sale.SKUIDPattern)
		}
		all = r.add(sku)
	}
	if k := all[at].Load(); k != nil {
		return k, nil
	}
	// All who ask get the same keys: a flush gathers calls by them.
	all[at].CompareAndSwap(nil, newKeys(r.prefix, sku, share))
	return all[at].Load(), nil
}

func (r *keyring) add(sku string) *skuKeys {
	sku = strings.Clone(sku) // it may be a part of a request
	all := new(skuKeys)
	if before, found, _ := r.skus.PeekOrAdd(sku, all); found {
		return before
	}
	return all
}
