package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
		err := e.seed(ctx, demoSKU, demoUnits)
		if err == nil {
			err = c.printBanner(e.banner(time.Now()))
		}
		if err != nil && ctx.Err() == nil {
			return errors.Join(err, e.stop(context.WithoutCancel(ctx)))
		}
	case <-ctx.Done():
	}
	return serveUntil(ctx, served, e.stop, stopTimeout(cfg), log)
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

// banner is where the node listens and what can be pasted into a shell.
type banner struct {
	Data   string `json:"data"` // the file
	Public string `json:"public"`
	Admin  string `json:"admin"`
	Buy    string `json:"buy"`
	Follow string `json:"follow"`
	Pay    string `json:"pay"`
}

// banner names another buyer at every start, so that its purchase always buys.
func (e *embedded) banner(now time.Time) banner {
	public := "http://" + e.servers.PublicAddr().String()
	buyer := fmt.Sprintf("buyer-%x", now.UnixMilli()&0xffffff)
	const key = "first-click"
	order := sale.DeriveOrderID(demoSKU, buyer, key)
	return banner{
		Data: e.cfg.Store.Path, Public: public, Admin: "http://" + e.servers.AdminAddr().String(),
		Buy: fmt.Sprintf("curl -sS -X POST %s/v1/skus/%s/orders -H 'X-Buyer-Id: %s' -H 'Idempotency-Key: %s' "+
			"-H 'Content-Type: application/json' -d '{\"quantity\":1}'", public, demoSKU, buyer, key),
		Follow: fmt.Sprintf("curl -sS %s/v1/orders/%s -H 'X-Buyer-Id: %s'", public, order, buyer),
		Pay:    fmt.Sprintf("%s order pay %s --public %s --secret %s", os.Args[0], order, public, e.cfg.Router.PaymentSecrets[0]),
	}
}

func (c *cli) printBanner(b banner) error {
	if c.format != "table" {
		return c.fields(b)
	}
	_, err := fmt.Fprintf(c.stdout, `Stockade, embedded: the data is in %s
  API    %s   (description: /openapi.yaml)
  admin  %s

Buy one unit of %q:
  %s

Follow that order to CREATED:
  %s

Pay for it, as a payment provider's signed callback does:
  %s

Ctrl-C stops it.
`, b.Data, b.Public, b.Admin, demoSKU, b.Buy, b.Follow, b.Pay)
	return err
}
