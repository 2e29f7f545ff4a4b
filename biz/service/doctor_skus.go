package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stockade/biz/sale"
)

// skus checks the SKUs of these ids, or those with stock.
func (d *Doctor) skus(ctx context.Context, ids []string) (found []sale.Finding) {
	if len(ids) == 0 {
		var more bool
		var err error
		if ids, more, err = d.withStock(ctx); err != nil {
			return []sale.Finding{unreadable("", err)}
		}
		switch {
		case len(ids) == 0:
			return []sale.Finding{sale.CheckSKU.OK("", "no SKU is loaded, open or paused")}
		case more:
			found = append(found, sale.CheckSKU.Warn("", fmt.Sprintf("only %d SKUs are looked at", len(ids)), "name those that matter: stockade doctor SKU..."))
		}
	}
	for _, id := range ids {
		found = append(found, d.sku(ctx, id)...)
	}
	return found
}

// withStock lists SKUs whose stock is in the gate; more tells that there may be others.
func (d *Doctor) withStock(ctx context.Context) (ids []string, more bool, err error) {
	after := ""
	for range doctorPages {
		listings, err := d.page(ctx, after)
		if err != nil {
			return nil, false, err
		}
		for _, l := range listings {
			if !l.State.HasStock() {
				continue
			}
			if len(ids) == doctorSKUs {
				return ids, true, nil
			}
			ids = append(ids, l.ID)
		}
		if len(listings) < doctorPage {
			return ids, false, nil
		}
		after = listings[len(listings)-1].ID
	}
	return ids, true, nil
}

func (d *Doctor) page(ctx context.Context, after string) ([]sale.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorStep)
	defer cancel()
	return d.Ledgers.Listings(ctx, after, doctorPage)
}

func unreadable(sku string, err error) sale.Finding {
	return sale.CheckSKU.Fail(sku, "not readable: "+err.Error(), "see the other findings: the database must answer first")
}

// sku checks one SKU.
func (d *Doctor) sku(ctx context.Context, id string) []sale.Finding {
	ctx, cancel := context.WithTimeout(ctx, doctorStep)
	defer cancel()
	l, err := d.Ledgers.Listing(ctx, id)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		return []sale.Finding{sale.CheckSKU.Fail(id, "there is no such SKU", "stockade sku create "+id+" --total N")}
	case err != nil:
		return []sale.Finding{unreadable(id, err)}
	}
	found := []sale.Finding{judgeState(l)}
	if !keepsShares(l) {
		return found
	}
	counts, err := d.Placer.Placement(ctx, id, l.Slots)
	if err != nil {
		found = append(found, sale.CheckSharePlacement.Fail(id, "not known: "+err.Error(), "see the findings about Redis"))
	} else {
		found = append(found, judgePlacement(id, counts))
	}
	return append(found, d.stock(ctx, id))
}

func judgeState(l sale.Listing) sale.Finding {
	seen := fmt.Sprintf("%s, path %s, total %d", l.State, l.Ledger.Mode, l.Ledger.Total)
	switch {
	case l.State == sale.Draft:
		return sale.CheckSKU.Fail(l.ID, seen, "stockade sku load "+l.ID)
	case l.State == sale.Paused:
		return sale.CheckSKU.Warn(l.ID, seen, "stockade sku open "+l.ID+", when the sale should go on")
	case !l.State.HasStock():
		return sale.CheckSKU.Warn(l.ID, seen, "this sale is over: check the SKU that is to be sold")
	case l.Ledger.Mode == sale.ModeMySQL:
		f := sale.CheckSKU.Warn(l.ID, seen, "stockade toggle set path redis --sku "+l.ID+", when Redis is well")
		if kind, known := sale.ToggleKindOf(sale.TogglePath); known {
			f.Runbook = kind.Page()
		}
		return f
	}
	return sale.CheckSKU.OK(l.ID, seen)
}

// judgePlacement wants every master to have the same number of slots, give or take one.
func judgePlacement(id string, counts map[string]int) sale.Finding {
	var texts []string
	least, most := -1, 0
	for _, master := range slices.Sorted(maps.Keys(counts)) {
		n := counts[master]
		texts = append(texts, fmt.Sprintf("%s %d", master, n))
		most = max(most, n)
		if least < 0 || n < least {
			least = n
		}
	}
	seen := "slots by master: " + strings.Join(texts, ", ")
	if most-least > 1 {
		return sale.CheckSharePlacement.Warn(id, seen, "split the cluster's hash slots evenly, in one range a master: redis-cli --cluster rebalance")
	}
	return sale.CheckSharePlacement.OK(id, seen)
}

// stock holds the shares to the ledger.
func (d *Doctor) stock(ctx context.Context, id string) sale.Finding {
	terms, l, figures, err := d.Conservation.Terms(ctx, id)
	do := "stockade reshare " + id + " --full"
	switch {
	case errors.Is(err, errMoved), err == nil && l.Ledger.State == sale.Resharing:
		return sale.CheckShareStock.Warn(id, "a reshare is under way", "ask again in a few seconds")
	case err != nil:
		return sale.CheckShareStock.Fail(id, "not known: "+err.Error(), "see the findings about Redis and MySQL")
	case !l.Ledger.Live():
		return sale.CheckShareStock.Fail(id, halfWay, do)
	}
	if why := mismatch(figures, l.Ledger.LaidGate, l); why != "" {
		return sale.CheckShareStock.Fail(id, why, do)
	}
	return judgeStock(id, terms, do)
}

func judgeStock(id string, t Terms, do string) sale.Finding {
	seen := fmt.Sprintf("total %d = promised %d + left %d + pending %d + on their way %d", t.Total, t.Promised, t.Left, t.Pending, t.Drift()-t.Excess())
	if excess := t.Excess(); excess != 0 {
		return sale.CheckShareStock.Fail(id, fmt.Sprintf("%s, and %d units cannot be explained", seen, excess), do)
	}
	return sale.CheckShareStock.OK(id, seen)
}
