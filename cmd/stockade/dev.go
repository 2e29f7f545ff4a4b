package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"stockade/biz/sale"
	"stockade/conf"
)

// The demo SKU of the embedded mode.
const (
	demoSKU   = "demo"
	demoUnits = 10_000
)

// runDev runs the embedded mode until ctx ends, with a demo SKU, and says what to try.
func (c *cli) runDev(ctx context.Context, cfg conf.Config) error {
	log, err := c.logger(cfg)
	if err != nil {
		return err
	}
	e, err := newEmbedded(ctx, cfg, log)
	if err != nil {
		return fail(exitUnavailable, err)
	}
	served := e.start()
	select {
	case <-e.restored:
		if err := e.seed(ctx, demoSKU, demoUnits); err != nil && ctx.Err() == nil {
			return errors.Join(err, e.stop(context.WithoutCancel(ctx)))
		}
		e.banner(c.stdout)
	case <-ctx.Done():
	}
	return serveUntil(ctx, served, e.stop, log)
}

// seed puts a SKU on sale if it is not there yet, or was left half-way. What an operator did with it since stays.
func (e *embedded) seed(ctx context.Context, sku string, units int64) error {
	listing, err := e.skus.Create(ctx, sale.SKU{
		ID: sku, Limit: sale.DefaultLimit, ReservePct: sale.DefaultReserve, PaymentWindow: sale.DefaultWindow,
	}, units)
	if errors.Is(err, sale.ErrExists) {
		listing, err = e.skus.Get(ctx, sku)
	}
	if err == nil && listing.State == sale.Draft {
		listing, err = e.skus.Load(ctx, sku)
	}
	if err == nil && listing.State == sale.Loaded {
		_, err = e.skus.Open(ctx, sku)
	}
	if err != nil {
		return fmt.Errorf("seed %s: %w", sku, err)
	}
	return nil
}

// banner says where the node listens and what can be pasted into a shell. The buyer is another one at every start, so
// that the purchase always buys.
func (e *embedded) banner(out io.Writer) {
	public, admin := e.servers.PublicAddr(), e.servers.AdminAddr()
	buyer := fmt.Sprintf("buyer-%x", time.Now().UnixMilli()&0xffffff)
	const key = "first-click"
	fmt.Fprintf(out, `Stockade, embedded: the data is in %s
  API    http://%s   (description: /openapi.yaml)
  admin  http://%s

Buy one unit of %q:
  curl -sS -X POST http://%s/v1/skus/%s/orders -H 'X-Buyer-Id: %s' -H 'Idempotency-Key: %s' -H 'Content-Type: application/json' -d '{"quantity":1}'

Follow that order to CREATED:
  curl -sS http://%s/v1/orders/%s -H 'X-Buyer-Id: %s'

Ctrl-C stops it.
`, e.cfg.Store.Path, public, admin, demoSKU, public, demoSKU, buyer, key,
		public, sale.DeriveOrderID(demoSKU, buyer, key), buyer)
}
