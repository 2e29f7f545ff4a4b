package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const skusPath = "/admin/v1/skus"

// skuView is a SKU as the admin API shows it. raw is what -o json prints: all of the answer.
type skuView struct {
	handler.ListingJSON
	raw json.RawMessage
}

func (c *cli) skuCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "sku",
		Short: "Create SKUs and run their sales",
		Long: "A SKU goes from DRAFT (create) to LOADED (load) to OPEN (open), may be PAUSED and opened again, and ends\n" +
			"CLOSED (close), then CLOSED_OUT (closeout). The service is asked through its admin API.",
	}
	group.PersistentFlags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	group.AddCommand(c.skuCreateCommand(), c.skuAdjustCommand(), c.skuShowCommand(), c.skuListCommand(),
		c.skuSlotsCommand(), c.skuPathCommand(), c.skuCloseoutCommand())
	for _, m := range skuMoves {
		group.AddCommand(c.skuMoveCommand(m))
	}
	return group
}

// adminSKU is admin for a command about one SKU, with that SKU's path.
func (c *cli) adminSKU(cmd *cobra.Command, id string) (cl *client, path string, err error) {
	if cl, err = c.admin(cmd); err == nil {
		path, err = skuPath(id)
	}
	return cl, path, err
}

// skuPath refuses ids that cannot exist before they end up in a URL.
func skuPath(id string) (string, error) {
	if !sale.ValidSKUID(id) {
		return "", fail(exitData, fmt.Errorf("SKU %q: must match %s", id, sale.SKUIDPattern))
	}
	if id == "." || id == ".." { // a path would lose these
		id = strings.ReplaceAll(id, ".", "%2E")
	}
	return skusPath + "/" + id, nil
}

func parseSKU(raw json.RawMessage) (skuView, error) {
	v := skuView{raw: raw}
	if err := json.Unmarshal(raw, &v.ListingJSON); err != nil || v.SKU == "" {
		return v, notWhat("a SKU")
	}
	return v, nil
}

func notWhat(what string) error {
	return fail(exitUnavailable, fmt.Errorf("the service answered with something that is not %s", what))
}

func (cl *client) sku(ctx context.Context, path string) (skuView, error) {
	raw, err := cl.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return skuView{}, err
	}
	return parseSKU(raw)
}

func (c *cli) skuShowCommand() *cobra.Command {
	var shares, books bool
	cmd := &cobra.Command{
		Use:     "show SKU",
		Short:   "Show one SKU, its shares or its books",
		Example: "  stockade sku show demo\n  stockade sku show demo --shares\n  stockade sku show demo --books -o json",
		Args:    exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			switch {
			case shares && books:
				return fail(exitUsage, errors.New("--shares and --books: choose one"))
			case shares:
				return c.showShares(cmd.Context(), cl, path)
			case books:
				return c.showBooks(cmd.Context(), cl, path)
			}
			v, err := cl.sku(cmd.Context(), path)
			if err != nil {
				return err
			}
			return c.printSKU(v)
		},
	}
	cmd.Flags().BoolVar(&shares, "shares", false, "show what each share holds")
	cmd.Flags().BoolVar(&books, "books", false, "show whether ledger, orders and shares agree")
	return cmd
}

func (c *cli) skuListCommand() *cobra.Command {
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List SKUs in the order of their ids",
		Example: "  stockade sku list\n  stockade sku list --after demo --limit 10 -o jsonl",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			rows, err := cl.pages(cmd.Context(), skusPath, "skus", after, limit)
			if err != nil {
				return err
			}
			r := result{header: []string{"SKU", "STATE", "TOTAL", "PROMISED", "AVAILABLE", "SOLD", "LIMIT", "SLOTS", "TOKEN", "OPENS AT"}}
			for _, raw := range rows {
				v, err := parseSKU(raw)
				if err != nil {
					return err
				}
				r.add(raw, v.SKU, v.State, whole(v.Ledger.Total), whole(v.Ledger.Promised), whole(v.Ledger.Available), whole(v.Ledger.Sold),
					whole(v.Limit), strconv.Itoa(v.Slots), v.PurchaseToken, moment(&v.OpensAt))
			}
			return c.print(r)
		},
	}
	pageFlags(cmd, &after, &limit)
	return cmd
}

func (c *cli) printSKU(v skuView) error {
	return c.fields(v.raw,
		[2]string{"sku", v.SKU},
		[2]string{"state", v.State},
		[2]string{"total", whole(v.Ledger.Total)},
		[2]string{"promised", whole(v.Ledger.Promised)},
		[2]string{"available", whole(v.Ledger.Available)},
		[2]string{"sold", whole(v.Ledger.Sold)},
		[2]string{"limit", whole(v.Limit)},
		[2]string{"slots", strconv.Itoa(v.Slots)},
		[2]string{"reserve", strconv.Itoa(v.ReservePct) + " %"},
		[2]string{"purchase token", v.PurchaseToken},
		[2]string{"opens at", moment(&v.OpensAt)},
		[2]string{"closes at", moment(v.ClosesAt)},
		[2]string{"payment window", v.PaymentWindow},
		[2]string{"epoch", whole(v.Ledger.Epoch)},
	)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}
