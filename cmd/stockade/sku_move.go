package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
)

// skuMove is a command that moves a SKU to another state.
type skuMove struct {
	name, short string
	to          sale.SKUState
}

var skuMoves = [...]skuMove{
	{"load", "Lay a SKU's stock out over its shares", sale.Loaded},
	{"open", "Open the sale of a loaded or paused SKU", sale.Open},
	{"pause", "Pause a sale: purchases answer NOT_ON_SALE until it is opened again", sale.Paused},
	{"close", "End a sale for good", sale.Closed},
}

func (c *cli) skuMoveCommand(m skuMove) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:     m.name + " SKU",
		Short:   m.short,
		Example: fmt.Sprintf("  stockade sku %s demo\n  stockade sku %s demo --dry-run", m.name, m.name),
		Args:    exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			return c.change(cmd.Context(), cl, path, request{Method: http.MethodPost, Path: path + "/" + m.name}, dry, func(v skuView) string {
				state := sale.SKUState(v.State)
				if slices.Contains(m.to.MayBecome(), state) {
					return ""
				}
				return (&sale.StateError{SKU: v.SKU, State: state, Want: m.name}).Error()
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the current state, and change nothing")
	reasonFlag(cmd)
	return cmd
}

func (c *cli) skuAdjustCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "adjust SKU +N|-N",
		Short: "Add units to a SKU or take unsold ones away",
		Long: "Adds N units to the SKU's total, or takes N away, and lays the stock out anew. The total never falls below\n" +
			"what is promised to buyers.",
		Example: "  stockade sku adjust demo +100\n  stockade sku adjust demo -20\n  stockade sku adjust demo -20 --dry-run",
		Args:    exactArgs("SKU", "+N|-N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			add, err := parseAdjustment(args[1])
			if err != nil {
				return err
			}
			body := map[string]int64{"add": add}
			return c.change(cmd.Context(), cl, path, request{http.MethodPost, path + "/adjust", body}, dry, func(v skuView) string {
				if state := sale.SKUState(v.State); !state.HasStock() {
					return (&sale.StateError{SKU: v.SKU, State: state, Want: "adjust"}).Error()
				}
				if v.Ledger.Total+add < v.Ledger.Promised {
					return fmt.Sprintf("the total would be %d, below the %d promised units", v.Ledger.Total+add, v.Ledger.Promised)
				}
				return ""
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the current state, and change nothing")
	reasonFlag(cmd)
	return cmd
}

// parseAdjustment wants a sign, so that nobody sets a total by mistake.
func parseAdjustment(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	signed := len(text) > 0 && (text[0] == '+' || text[0] == '-')
	if err != nil || !signed || n == 0 || n > sale.MaxTotal || n < -sale.MaxTotal {
		return 0, fail(exitData, fmt.Errorf("%q: must be a whole number of units with its sign, such as +100 or -20", text))
	}
	return n, nil
}

// change sends a request about a SKU and prints the SKU as it is then; a dry run shows the request and the SKU as it
// is now, and why it would be refused.
func (c *cli) change(ctx context.Context, cl *client, path string, r request, dry bool, refused func(skuView) string) error {
	if dry {
		now, err := cl.sku(ctx, path)
		if err != nil {
			return err
		}
		return c.printDryRun(dryRun{Requests: []request{r}, Now: now.raw, Refused: refused(now)})
	}
	raw, err := cl.call(ctx, r.Method, r.Path, r.Body)
	if err != nil {
		return err
	}
	v, err := parseSKU(raw)
	if err != nil {
		return err
	}
	return c.printSKU(v)
}
