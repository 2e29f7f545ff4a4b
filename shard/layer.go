package shard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// Identity names the data that Redis holds now, by the run id and the replication id of every master. It is "" when a
// server does not tell them.
func (g *Gate) Identity(ctx context.Context) (string, error) {
	var mu sync.Mutex
	var ids []string
	err := g.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		info, err := master.Info(ctx).Result()
		if err != nil {
			return fmt.Errorf("shard: identity: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, identityOf(info))
		return nil
	})
	if err != nil || slices.Contains(ids, "") {
		return "", err
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:16]), nil
}

// identityOf picks a server's identity out of INFO; "" without run_id.
func identityOf(info string) string {
	fields := infoFields(info)
	run := fields["run_id"]
	if run == "" {
		return ""
	}
	return run + " " + fields["master_replid"]
}

// Seal gives the share the epoch, stops admissions there, and returns its oldest undecided takes, at most limit and at
// most 1000. A share that was missing stays Gone in later answers, also to later epochs, until it is opened: it was
// never laid out whole. The same holds for a share that was wiped and not opened. When the share was opened under this
// very epoch, Seal fails with sale.ErrConflict.
func (g *Gate) Seal(ctx context.Context, sku string, share sale.Share, epoch int64, limit int) (sale.SealedShare, error) {
	sealed, err := g.SealAll(ctx, sku, []sale.Share{share}, epoch, limit)
	if err != nil {
		return sale.SealedShare{}, err
	}
	return sealed[0], nil
}

// SealAll is Seal for several shares, in their order, in pipelines. limit is for each share. After an
// error some of them are sealed.
func (g *Gate) SealAll(
	ctx context.Context, sku string, shares []sale.Share, epoch int64, limit int,
) ([]sale.SealedShare, error) {
	ks, err := g.layerKeysOf(sku, shares, epoch)
	if err != nil {
		return nil, err
	}
	cmds := runAll(ctx, g.client, len(ks), func(i int, byText bool) stringsCmd {
		args := evalArgs(sealScript, byText, ks[i].args[:], []any{epoch, min(max(limit, 1), maxPage)})
		return stringsCmd{redis.NewStringSliceCmd(ctx, args...)}
	})
	sealed := make([]sale.SealedShare, len(cmds))
	for i, cmd := range cmds {
		if sealed[i], err = readSealed(cmd.Result()); err != nil {
			return nil, fmt.Errorf("share %s: %w", shares[i], err)
		}
	}
	return sealed, nil
}

// readSealed reads the reply that lua/seal.lua describes.
func readSealed(reply []string, err error) (sale.SealedShare, error) {
	switch {
	case err != nil:
		return sale.SealedShare{}, fmt.Errorf("shard: seal: %w", err)
	case len(reply) == 1 && reply[0] == strconv.Itoa(replyStale):
		return sale.SealedShare{}, sale.ErrConflict
	case len(reply) < 4:
		return sale.SealedShare{}, fmt.Errorf("shard: malformed reply of seal: %d strings", len(reply))
	}
	s := sale.SealedShare{Gone: reply[1] == "1", More: reply[3] == "1"}
	if s.Epoch, err = strconv.ParseInt(reply[2], 10, 64); err != nil {
		return sale.SealedShare{}, fmt.Errorf("shard: malformed reply of seal: %w", err)
	}
	s.Pending, err = parseTakes(reply[4:])
	return s, err
}

// Tell settles undecided takes of a share sealed at epoch: kept ids stay known, the others are given back as doubtful.
func (g *Gate) Tell(
	ctx context.Context, sku string, share sale.Share, epoch int64, kept, dropped []sale.PendingTake,
) error {
	k, err := g.layerKeys(sku, share, epoch)
	if err != nil {
		return err
	}
	all := slices.Concat(kept, dropped)
	for from := 0; from < len(all); from += tellBatch {
		var packed []byte
		for i := from; i < min(from+tellBatch, len(all)); i++ {
			packed = packTell(packed, all[i].Order, i < len(kept))
		}
		if err := g.layerStep(ctx, tellScript, k, epoch, packed); err != nil {
			return err
		}
	}
	return nil
}

// Wipe empties a share sealed at epoch.
func (g *Gate) Wipe(ctx context.Context, sku string, share sale.Share, epoch int64) error {
	k, err := g.layerKeys(sku, share, epoch)
	if err != nil {
		return err
	}
	return g.layerStep(ctx, wipeScript, k, epoch)
}

// Fill loads holdings into a share sealed at epoch. Orders that it knows already are left alone.
func (g *Gate) Fill(ctx context.Context, sku string, share sale.Share, epoch int64, rows []sale.Holding) error {
	k, err := g.layerKeys(sku, share, epoch)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(rows, fillBatch) {
		var packed []byte
		for i := range chunk {
			if err := checkTake(chunk[i].Buyer, chunk[i].Quantity); err != nil {
				return err
			}
			packed = packFill(packed, &chunk[i])
		}
		if err := g.layerStep(ctx, fillScript, k, epoch, packed); err != nil {
			return err
		}
	}
	return nil
}

// OpenAll sets what is left in shares sealed at epoch, left by left, and lets them admit, in pipelines. A share that is open
// at this epoch is left alone. After an error some of them are open.
func (g *Gate) OpenAll(ctx context.Context, sku string, shares []sale.Share, epoch int64, left []int64) error {
	ks, err := g.layerKeysOf(sku, shares, epoch)
	if err != nil {
		return err
	}
	if len(left) != len(shares) {
		return sale.BadInput("left", fmt.Sprintf("must have %d numbers, one for each share", len(shares)))
	}
	for _, n := range left {
		if n < 0 || n > sale.MaxTotal {
			return sale.BadInput("left", fmt.Sprintf("must be a whole number from 0 to %d", sale.MaxTotal))
		}
	}
	cmds := runAll(ctx, g.client, len(ks), func(i int, byText bool) intsCmd {
		return intsCmd{redis.NewIntSliceCmd(ctx, evalArgs(openScript, byText, ks[i].args[:], []any{epoch, left[i]})...)}
	})
	for i, cmd := range cmds {
		if err := checkStep(openScript, cmd.Val(), cmd.Err()); err != nil {
			return fmt.Errorf("share %s: %w", shares[i], err)
		}
	}
	return nil
}

// Drop deletes the keys of a share sealed at epoch, with whatever is undecided there. A share without keys is dropped
// already. It fails with sale.ErrConflict when the share is open or has another epoch.
func (g *Gate) Drop(ctx context.Context, sku string, share sale.Share, epoch int64) error {
	k, err := g.layerKeys(sku, share, epoch)
	if err != nil {
		return err
	}
	return g.layerStep(ctx, dropScript, k, epoch)
}

func (g *Gate) layerKeys(sku string, share sale.Share, epoch int64) (*keys, error) {
	if err := checkEpoch(epoch); err != nil {
		return nil, err
	}
	return g.keys.of(sku, share)
}

func (g *Gate) layerKeysOf(sku string, shares []sale.Share, epoch int64) (all []*keys, err error) {
	all = make([]*keys, len(shares))
	for i, share := range shares {
		if all[i], err = g.layerKeys(sku, share, epoch); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// layerStep runs one step of a reshare, see checkStep.
func (g *Gate) layerStep(ctx context.Context, s *script, k *keys, args ...any) error {
	reply, err := g.runInts(ctx, s, k, args...)
	return checkStep(s, reply, err)
}

// checkStep reads the reply of a step of a reshare: sale.ErrConflict when the share does not belong to this epoch, ErrGone
// when it was lost meanwhile.
func checkStep(s *script, reply []int64, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("shard: %s: %w", s.name, err)
	case len(reply) == 0:
		return fmt.Errorf("shard: malformed reply of %s", s.name)
	case reply[0] == replyStale:
		return sale.ErrConflict
	case reply[0] == replyGone:
		return fmt.Errorf("shard: %s: %w", s.name, ErrGone)
	}
	return nil
}
