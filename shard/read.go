package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// Bounds of reading a share's buyers.
const (
	scanCount = 1000 // buyers Redis looks at for one page
	scanPages = 4096 // pages of one share; one with more buyers is left out
)

// Peek reads the figures of every share, in the order of sale.Shares, in one pipeline.
func (g *Gate) Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error) {
	if slots < 1 || slots > sale.MaxSlots {
		return nil, sale.BadInput("slots", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxSlots))
	}
	shares := sale.Shares(slots)
	pipe := g.client.Pipeline()
	cmds := make([]*redis.SliceCmd, len(shares))
	for i, share := range shares {
		k, err := g.keys.of(sku, share)
		if err != nil {
			return nil, err
		}
		cmds[i] = pipe.HMGet(ctx, k.stock, "epoch", "sealed", "left", "pending", "initial", "changes", "short")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("shard: peek: %w", err)
	}
	figures := make([]sale.Figures, len(shares))
	for i, share := range shares {
		values := cmds[i].Val()
		if last := len(values) - 1; last >= 0 && values[last] == nil {
			values[last] = "0" // short is only there when it was needed
		}
		n, gone, err := numbers(values)
		if err != nil {
			return nil, fmt.Errorf("shard: peek: share %s: %w", share, err)
		}
		figures[i] = sale.Figures{Share: share, Gone: gone}
		if !gone {
			figures[i] = sale.Figures{
				Share: share, Epoch: n[0], Sealed: n[1] == 1, Left: n[2], Pending: n[3], Initial: n[4], Changes: n[5],
				Short: n[6],
			}
		}
	}
	return figures, nil
}

// numbers reads whole numbers out of fields of a stock hash; gone when the hash is missing.
func numbers(values []any) (n []int64, gone bool, err error) {
	if len(values) == 0 || values[0] == nil {
		return nil, true, nil
	}
	n = make([]int64, len(values))
	for i, v := range values {
		text, _ := v.(string)
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, false, fmt.Errorf("malformed figure %q", text)
		}
	}
	return n, false, nil
}

// Winners reads the buyers of these shares, a page of every share at a time. Left out are shares that are gone or
// sealed, and those whose epoch changes meanwhile.
//
// A share's change number is read before its buyers, and HSCAN returns every field that is there from its beginning to
// its end: so nobody who held units at that change number is missing.
func (g *Gate) Winners(ctx context.Context, sku string, shares []sale.Share) ([]sale.Winners, error) {
	scans := make([]*scan, len(shares))
	for i, share := range shares {
		k, err := g.keys.of(sku, share)
		if err != nil {
			return nil, err
		}
		scans[i] = &scan{keys: k, found: sale.Winners{Share: share}}
	}
	open := scans
	for page := 0; len(open) > 0 && page < scanPages; page++ {
		if err := g.scanPage(ctx, open, page == 0); err != nil {
			return nil, fmt.Errorf("shard: winners: %w", err)
		}
		open = slices.DeleteFunc(slices.Clone(open), func(s *scan) bool { return s.done })
	}
	return g.unchanged(ctx, scans)
}

// scan is one share on its way through Winners.
type scan struct {
	keys   *keys
	found  sale.Winners
	cursor uint64
	done   bool
	out    bool // gone or sealed
}

// scanPage reads one page of buyers of every scan; at first also what the share is.
func (g *Gate) scanPage(ctx context.Context, scans []*scan, first bool) error {
	pipe := g.client.Pipeline()
	stocks := make([]*redis.SliceCmd, len(scans))
	pages := make([]*redis.ScanCmd, len(scans))
	for i, s := range scans {
		if first {
			stocks[i] = pipe.HMGet(ctx, s.keys.stock, "epoch", "sealed", "changes")
		}
		pages[i] = pipe.HScan(ctx, s.keys.buyer, s.cursor, "", scanCount)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for i, s := range scans {
		if first {
			n, gone, err := numbers(stocks[i].Val())
			if err != nil {
				return err
			}
			if gone || n[1] == 1 {
				s.out, s.done = true, true
				continue
			}
			s.found.Epoch, s.found.Changes = n[0], n[2]
		}
		fields, cursor := pages[i].Val()
		for at := 0; at < len(fields); at += 2 { // fields and values alternate
			s.found.Hashes = append(s.found.Hashes, xxhash.Sum64String(fields[at]))
		}
		s.cursor, s.done = cursor, cursor == 0
	}
	return nil
}

// unchanged returns what was found in the shares that are complete and still have the epoch they had before.
func (g *Gate) unchanged(ctx context.Context, scans []*scan) ([]sale.Winners, error) {
	scans = slices.DeleteFunc(scans, func(s *scan) bool { return s.out || !s.done })
	if len(scans) == 0 {
		return nil, nil
	}
	pipe := g.client.Pipeline()
	stocks := make([]*redis.SliceCmd, len(scans))
	for i, s := range scans {
		stocks[i] = pipe.HMGet(ctx, s.keys.stock, "epoch", "sealed")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("shard: winners: %w", err)
	}
	found := make([]sale.Winners, 0, len(scans))
	for i, s := range scans {
		n, gone, err := numbers(stocks[i].Val())
		if err != nil {
			return nil, fmt.Errorf("shard: winners: %w", err)
		}
		if gone || n[0] != s.found.Epoch || n[1] == 1 {
			continue
		}
		slices.Sort(s.found.Hashes)
		s.found.Hashes = slices.Compact(s.found.Hashes)
		found = append(found, s.found)
	}
	return found, nil
}

// Overdue lists takes that are undecided for longer than age by the clock of Redis, oldest first, at most limit and at
// most 1000.
func (g *Gate) Overdue(
	ctx context.Context, sku string, share sale.Share, age time.Duration, limit int,
) ([]sale.PendingTake, error) {
	k, err := g.keys.of(sku, share)
	if err != nil {
		return nil, err
	}
	args := []any{max(age.Milliseconds(), 0), min(max(limit, 1), maxPage)}
	reply, err := g.runStrings(ctx, overdueScript, []any{k.order, k.journal}, args...)
	if err != nil {
		return nil, fmt.Errorf("shard: overdue: %w", err)
	}
	return parseTakes(reply)
}

// Held looks an undecided take up by its order; sale.ErrNotFound when the share holds none, or has no keys.
func (g *Gate) Held(ctx context.Context, sku string, share sale.Share, id sale.OrderID) (sale.PendingTake, error) {
	k, err := g.keys.of(sku, share)
	if err != nil {
		return sale.PendingTake{}, err
	}
	pipe := g.client.Pipeline()
	order := pipe.HGet(ctx, k.order, string(id[:]))
	taken := pipe.ZScore(ctx, k.journal, string(id[:])) // ms by the clock of Redis
	_, err = pipe.Exec(ctx)
	if errors.Is(cmp.Or(order.Err(), taken.Err()), redis.Nil) {
		return sale.PendingTake{}, sale.ErrNotFound
	}
	if err != nil {
		return sale.PendingTake{}, fmt.Errorf("shard: held: %w", err)
	}
	e, err := parseEntry(order.Val())
	if err != nil {
		return sale.PendingTake{}, err
	}
	if !e.undecided() {
		return sale.PendingTake{}, sale.ErrNotFound
	}
	node, err := g.lanes.node(ctx, k)
	if err != nil {
		return sale.PendingTake{}, fmt.Errorf("shard: held: %w", err)
	}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return sale.PendingTake{}, fmt.Errorf("shard: held: %w", err)
	}
	return e.take(id, now.Sub(time.UnixMilli(int64(taken.Val())))), nil
}
