package main

import (
	"context"
	"errors"
	"fmt"
	"net"
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
		return err
	}
	served := e.start()
	select {
	case <-e.restored:
		err := e.seed(ctx, demoSKU, demoUnits)
		if err == nil {
			err = c.greet(e)
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
	Token  string `json:"admin_token,omitempty"` // of an operator; empty when others are configured
	File   string `json:"admin_token_file"`      // where it is, or the file of those who are configured
	Buy    string `json:"buy"`
	Follow string `json:"follow"`
	Pay    string `json:"pay"`
	Orders string `json:"orders,omitempty"` // with a buyer's token
}

// urlOf is how a listener is called, which speaks TLS when it has a certificate.
func urlOf(addr net.Addr, certificate string) string {
	if certificate != "" {
		return "https://" + addr.String()
	}
	return "http://" + addr.String()
}

// banner names another buyer at every start, so that its purchase always buys.
func (e *embedded) banner(now time.Time) (banner, error) {
	public := urlOf(e.servers.PublicAddr(), e.cfg.Router.TLSCertFile)
	buyer := fmt.Sprintf("buyer-%x", now.UnixMilli()&0xffffff)
	const key = "first-click"
	order := sale.DeriveOrderID(demoSKU, buyer, key)
	b := banner{
		Data: e.cfg.Store.Path, Public: public, Admin: urlOf(e.servers.AdminAddr(), e.cfg.Router.AdminTLSCertFile),
		Buy: fmt.Sprintf("curl -sS -X POST %s/v1/skus/%s/orders -H 'X-Buyer-Id: %s' -H 'Idempotency-Key: %s' "+
			"-H 'Content-Type: application/json' -d '{\"quantity\":1}'", public, demoSKU, buyer, key),
		Follow: fmt.Sprintf("curl -sS %s/v1/orders/%s -H 'X-Buyer-Id: %s'", public, order, buyer),
		Pay:    fmt.Sprintf("%s order pay %s --public %s --secret %s", os.Args[0], order, public, e.cfg.Router.PaymentSecrets[0]),
		File:   e.cfg.Auth.AdminTokensFile,
	}
	var err error
	if b.Orders, err = e.asBuyer(buyer, now); err != nil || e.adminToken == "" {
		return b, err
	}
	b.File = e.adminToken
	b.Token, err = readToken(e.adminToken)
	return b, err
}

func (c *cli) greet(e *embedded) error {
	b, err := e.banner(time.Now())
	if err != nil {
		return err
	}
	if c.format != "table" {
		return c.fields(b)
	}
	token := "the tokens of " + b.File
	if b.Token != "" {
		token = b.Token + " in " + b.File
	}
	orders := ""
	if b.Orders != "" {
		orders = "\nSee the buyer's orders with a token, as an app does:\n  " + b.Orders + "\n"
	}
	_, err = fmt.Fprintf(c.stdout, `Stockade, embedded: the data is in %s
  API    %s   (description: /openapi.yaml)
  admin  %s
  token  %s

Buy one unit of %q:
  %s

Follow that order to CREATED:
  %s

Pay for it, as a payment provider's signed callback does:
  %s
%s
Ctrl-C stops it.
`, b.Data, b.Public, b.Admin, token, demoSKU, b.Buy, b.Follow, b.Pay, orders)
	return err
}
