package service

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"stockade/biz/sale"
)

// Round looks for SKUs that nobody asked for: at all ledgers, in turn, for reshares without an end and for shares that
// were laid on another Redis; at the shares of the SKUs with traffic; and at those of a few others, in turn. What it finds
// is asked for.
func (h *Healer) Round(ctx context.Context) {
	h.forget()
	gate, err := h.identity(ctx)
	if err != nil {
		h.trouble(ctx, "Redis does not tell who it is", "", err)
	} else {
		h.scan(ctx, gate)
	}
	skus := h.Active(activeFor)
	skus = skus[:min(len(skus), healActive)]
	for _, sku := range h.turn(ctx) {
		if !slices.Contains(skus, sku) { // two measurements in one round would count as two in a row
			skus = append(skus, sku)
		}
	}
	h.inspect(ctx, skus)
}

// identity asks every master who it is, which costs one small command each.
func (h *Healer) identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	return h.Layer.Identity(ctx)
}

// scan looks at ledgers. When Redis has become another one since the last round, all of them are looked at, at once.
func (h *Healer) scan(ctx context.Context, gate string) {
	h.mu.Lock()
	whole := h.gate != gate
	after := h.after
	if whole {
		after = ""
	}
	h.mu.Unlock()
	for seen := 0; whole || seen < healScan; seen += healListings {
		page, err := h.listings(ctx, after, healListings)
		if err != nil {
			h.trouble(ctx, "ledgers not read", "", err)
			return
		}
		for _, l := range page {
			resharing := l.Ledger.State == sale.Resharing && l.State != sale.ClosedOut
			if resharing || (keepsShares(l) && (!l.Ledger.Live() || l.Ledger.LaidGate != gate)) {
				h.Ask(l.ID, WhyLoss, l.Ledger.Epoch)
			}
		}
		after = ""
		if len(page) < healListings {
			break
		}
		after = page[len(page)-1].ID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.after, h.gate = after, gate
}

func (h *Healer) listings(ctx context.Context, after string, limit int) ([]sale.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	return h.Ledgers.Listings(ctx, after, limit)
}

// turn picks the next few SKUs, whoever asks for them.
func (h *Healer) turn(ctx context.Context) []string {
	h.mu.Lock()
	after := h.others
	h.mu.Unlock()
	page, err := h.listings(ctx, after, healOther)
	if err != nil {
		h.trouble(ctx, "ledgers not read", "", err)
		return nil
	}
	after = ""
	var skus []string
	for _, l := range page {
		if keepsShares(l) {
			skus = append(skus, l.ID)
		}
	}
	if len(page) == healOther {
		after = page[len(page)-1].ID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others = after
	return skus
}

// inspect measures SKUs, a few at a time.
func (h *Healer) inspect(ctx context.Context, skus []string) {
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for _, sku := range skus {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, healTimeout)
			defer cancel()
			why, epoch, err := h.Conservation.Measure(ctx, sku)
			if err != nil {
				h.trouble(ctx, "conservation not measured", sku, err)
			}
			if why != 0 {
				h.Ask(sku, why, epoch)
			}
			return nil
		})
	}
	_ = group.Wait() // measurements report for themselves
}

// forget drops what is known of SKUs that had their rest.
func (h *Healer) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	for sku, p := range h.known {
		idle := !p.busy && now.Sub(p.next) > healSpacingMax && now.Sub(p.sign.since) > healSpacingMax
		if _, waits := h.asked[sku]; idle && !waits {
			delete(h.known, sku)
		}
	}
}
