package service

import (
	"context"
	"slices"

	"stockade/biz/sale"
)

// Bounds of reading the winners of a SKU on path mysql.
const (
	buyersPage = 1000
	buyerPages = 4096 // a SKU with more buyers goes without flags
)

// readLedger notes what the ledger of a SKU on path mysql says, as if it were figures of shares: all of it lies in the
// reserve, where every buyer may take it.
func (w *Watcher) readLedger(ctx context.Context, sku string) (sale.Listing, error) {
	l, err := w.ledgers.Listing(ctx, sku)
	if err != nil || l.Ledger.Mode != sale.ModeMySQL || !l.Ledger.Live() {
		return l, err
	}
	for _, share := range sale.Shares(l.Slots) {
		f := sale.Figures{Share: share, Epoch: l.Ledger.LiveEpoch, Changes: l.Ledger.Changes}
		if share == sale.Reserve {
			f.Left = l.Ledger.Available()
		}
		w.flags.Note(sku, f)
	}
	return l, nil
}

// ledgerWinners reads who holds units of a SKU on path mysql once there are none left, for the shares that flags ask
// about: a buyer's home. The ledger is read first, so that nobody who held units at its change number is missing.
func (w *Watcher) ledgerWinners(ctx context.Context, sku string) error {
	l, err := w.readLedger(ctx, sku)
	if err != nil || l.Ledger.Mode != sale.ModeMySQL || !l.Ledger.Live() || l.Ledger.Available() > 0 {
		return err
	}
	hashes := make([][]uint64, l.Slots)
	for after, pages := "", 0; ; pages++ {
		buyers, err := w.ledgers.BuyersOf(ctx, sku, after, buyersPage)
		if err != nil || pages == buyerPages {
			return err
		}
		for _, buyer := range buyers {
			hash := buyerHash(buyer)
			home := sale.Home(hash, l.Slots)
			hashes[home] = append(hashes[home], hash)
		}
		if len(buyers) < buyersPage {
			break
		}
		after = buyers[len(buyers)-1]
	}
	for _, share := range sale.Shares(l.Slots) {
		found := sale.Winners{Share: share, Epoch: l.Ledger.LiveEpoch, Changes: l.Ledger.Changes}
		if share != sale.Reserve {
			found.Hashes = hashes[share]
			slices.Sort(found.Hashes)
		}
		w.flags.Winners(sku, found)
	}
	return nil
}
