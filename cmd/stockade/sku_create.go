package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
)

// newSKU is the body that creates a SKU; what is left out takes the service's default.
type newSKU struct {
	SKU           string `json:"sku"`
	Total         int64  `json:"total"`
	Limit         *int64 `json:"limit,omitempty"`
	Slots         any    `json:"slots,omitempty"` // "auto" or a number
	ReservePct    *int64 `json:"reserve_pct,omitempty"`
	OpensAt       string `json:"opens_at,omitempty"`
	ClosesAt      string `json:"closes_at,omitempty"`
	PaymentWindow string `json:"payment_window,omitempty"`
	PurchaseToken string `json:"purchase_token,omitempty"`
}

// createFlags are the flags of `sku create` as they are written.
type createFlags struct {
	total, limit, reservePct          int64
	slots, opensAt, closesAt, payment string
	token                             string
	open, dryRun                      bool
}

func (c *cli) skuCreateCommand() *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use:   "create SKU --total N",
		Short: "Create a SKU; with --open also load and open it",
		Example: "  stockade sku create demo --total 500 --limit 2 --open\n" +
			"  stockade sku create demo --total 500 --opens-at 2026-11-27T09:00:00Z --closes-at 2026-11-28T09:00:00Z\n" +
			"  stockade sku create demo --total 500 --dry-run",
		Args: exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			body, err := f.body(cmd, args[0])
			if err != nil {
				return err
			}
			steps := []string{}
			if f.open {
				steps = []string{"load", "open"}
			}
			if f.dryRun {
				return c.dryCreate(cmd.Context(), cl, body, steps)
			}
			return c.create(cmd.Context(), cl, body, steps)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.total, "total", 0, "units for sale (required)")
	flags.Int64Var(&f.limit, "limit", sale.DefaultLimit, "units one buyer may hold")
	flags.StringVar(&f.slots, "slots", "auto", "stock slots, 1 to 32, or auto for about 50 units in each")
	flags.Int64Var(&f.reservePct, "reserve-pct", sale.DefaultReserve, "percent of the stock kept in the reserve")
	flags.StringVar(&f.opensAt, "opens-at", "", "first moment of the sale, RFC 3339 (default now)")
	flags.StringVar(&f.closesAt, "closes-at", "", "end of the sale, RFC 3339 (default: none)")
	flags.StringVar(&f.payment, "payment-window", sale.DefaultWindow.String(), "time that a buyer has to pay")
	flags.StringVar(&f.token, "purchase-token", "optional", "whether purchases need a token of POST /v1/skus/{sku}/token: optional, required")
	flags.BoolVar(&f.open, "open", false, "load and open the SKU too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be sent and change nothing")
	reasonFlag(cmd)
	return cmd
}

// body checks what can be checked here and leaves the rest to the service. Flags that were not given are not sent.
func (f createFlags) body(cmd *cobra.Command, id string) (newSKU, error) {
	if _, err := skuPath(id); err != nil {
		return newSKU{}, err
	}
	body := newSKU{SKU: id, Total: f.total, OpensAt: f.opensAt, ClosesAt: f.closesAt}
	given := cmd.Flags().Changed
	if !given("total") {
		return body, fail(exitUsage, errors.New("--total is required"))
	}
	if given("limit") {
		body.Limit = &f.limit
	}
	if given("reserve-pct") {
		body.ReservePct = &f.reservePct
	}
	if given("payment-window") {
		body.PaymentWindow = f.payment
	}
	if given("purchase-token") {
		body.PurchaseToken = f.token
	}
	if given("slots") {
		body.Slots = f.slots
		if n, err := strconv.Atoi(f.slots); err == nil {
			body.Slots = n
		}
	}
	for _, at := range []struct{ flag, value string }{{"opens-at", f.opensAt}, {"closes-at", f.closesAt}} {
		if _, err := time.Parse(time.RFC3339, at.value); at.value != "" && err != nil {
			return body, fail(exitData, fmt.Errorf("--%s: must be a time such as 2026-01-02T03:04:05Z", at.flag))
		}
	}
	return body, nil
}

func (c *cli) create(ctx context.Context, cl *client, body newSKU, steps []string) error {
	raw, err := cl.call(ctx, http.MethodPost, skusPath, body)
	if err != nil {
		return err
	}
	path, err := skuPath(body.SKU)
	if err != nil {
		return err
	}
	done := "created"
	for _, step := range steps {
		if raw, err = cl.call(ctx, http.MethodPost, path+"/"+step, nil); err != nil {
			return fmt.Errorf("%s was %s, but not: %s: %w", body.SKU, done, step, err)
		}
		done += " and " + step + "ed"
	}
	v, err := parseSKU(raw)
	if err != nil {
		return err
	}
	return c.printSKU(v)
}

func (c *cli) dryCreate(ctx context.Context, cl *client, body newSKU, steps []string) error {
	path, err := skuPath(body.SKU)
	if err != nil {
		return err
	}
	plan := dryRun{Requests: []request{{http.MethodPost, skusPath, body}}}
	for _, step := range steps {
		plan.Requests = append(plan.Requests, request{Method: http.MethodPost, Path: path + "/" + step})
	}
	switch status, answer, err := cl.send(ctx, http.MethodGet, path, nil); {
	case err != nil:
		return err
	case status == http.StatusOK:
		plan.Now = json.RawMessage(answer)
		plan.Refused = "the SKU id is taken"
	case status != http.StatusNotFound:
		return problemError(status, answer)
	}
	return c.printDryRun(plan)
}
