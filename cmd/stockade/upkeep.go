package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// longCall is how long a command waits for work that reads every row of a SKU.
const longCall = 15 * time.Minute

const dryHelp = "show what would be sent and the current state, and change nothing"

// patientSKU is adminSKU for a call that may take long.
func (c *cli) patientSKU(cmd *cobra.Command, id string) (cl *client, path string, err error) {
	if cl, path, err = c.adminSKU(cmd, id); err == nil {
		cl.http.Timeout = longCall
	}
	return cl, path, err
}

func (c *cli) reshareCommand() *cobra.Command {
	var full, dry bool
	cmd := &cobra.Command{
		Use:   "reshare SKU [--full]",
		Short: "Lay a SKU's stock out over its shares anew",
		Long: "Evens out what is left, which takes milliseconds; purchases wait. With --full every buyer and every order is laid\n" +
			"out from MySQL too, which takes seconds at 100 000 orders and mends whatever Redis forgot or got wrong.",
		Example: "  stockade reshare demo\n  stockade reshare demo --full\n  stockade reshare demo --full --dry-run",
		Args:    exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			r := request{http.MethodPost, path + "/reshare", map[string]bool{"full": full}}
			return c.change(cmd.Context(), cl, path, r, dry, func(v skuView) string {
				if state := sale.SKUState(v.State); !state.HasStock() && state != sale.Closed {
					return (&sale.StateError{SKU: v.SKU, State: state, Want: "reshare"}).Error()
				}
				return ""
			})
		},
	}
	c.adminFlag(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "lay out every buyer and order too")
	cmd.Flags().BoolVar(&dry, "dry-run", false, dryHelp)
	reasonFlag(cmd)
	return cmd
}

func (c *cli) adminFlag(cmd *cobra.Command) {
	cmd.Flags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
}

func (c *cli) skuSlotsCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:     "slots SKU N|auto",
		Short:   "Spread a SKU's stock over another number of slots, by a full reshare",
		Example: "  stockade sku slots demo 8\n  stockade sku slots demo auto --dry-run",
		Args:    exactArgs("SKU", "N|auto"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			var slots any = args[1]
			if args[1] != "auto" {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 || n > sale.MaxSlots {
					return fail(exitData, fmt.Errorf("%q: must be \"auto\" or a whole number from 1 to %d", args[1], sale.MaxSlots))
				}
				slots = n
			}
			r := request{http.MethodPost, path + "/slots", map[string]any{"slots": slots}}
			return c.change(cmd.Context(), cl, path, r, dry, needsShares("change its slots"))
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, dryHelp)
	reasonFlag(cmd)
	return cmd
}

func (c *cli) skuPathCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "path SKU redis|mysql",
		Short: "Send a SKU's purchases through Redis, or past it straight to MySQL",
		Long: "mysql works while Redis is down, at a bounded rate. Going back to redis is a full reshare, so nothing that was\n" +
			"admitted before counts twice.",
		Example: "  stockade sku path demo mysql\n  stockade sku path demo redis",
		Args:    exactArgs("SKU", "redis|mysql"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.adminSKU(cmd, args[0])
			if err != nil {
				return err
			}
			if mode := sale.Mode(args[1]); mode != sale.ModeRedis && mode != sale.ModeMySQL {
				return fail(exitData, fmt.Errorf("%q: must be redis or mysql", args[1]))
			}
			r := request{http.MethodPost, path + "/path", map[string]string{"path": args[1]}}
			return c.change(cmd.Context(), cl, path, r, dry, needsShares("change its path"))
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, dryHelp)
	reasonFlag(cmd)
	return cmd
}

// needsShares says why a change of a SKU without stock in Redis would be refused.
func needsShares(want string) func(skuView) string {
	return func(v skuView) string {
		if state := sale.SKUState(v.State); !state.HasStock() {
			return (&sale.StateError{SKU: v.SKU, State: state, Want: want}).Error()
		}
		return ""
	}
}

func (c *cli) skuCloseoutCommand() *cobra.Command {
	var dry, report bool
	cmd := &cobra.Command{
		Use:   "closeout SKU",
		Short: "End a closed SKU's life: compare its books, keep a report, delete its keys, archive its rows",
		Long: "Refused while orders are queued, unpaid or not credited, and when the books do not agree. Ask again after any\n" +
			"failure: it finishes what is left to do.",
		Example: "  stockade sku closeout demo\n  stockade sku closeout demo --dry-run\n  stockade sku closeout demo --report",
		Args:    exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.patientSKU(cmd, args[0])
			switch {
			case err != nil:
				return err
			case dry && report:
				return fail(exitUsage, errors.New("--dry-run and --report: choose one"))
			}
			r := request{Method: http.MethodPost, Path: path + "/closeout"}
			if dry {
				return c.change(cmd.Context(), cl, path, r, true, func(v skuView) string {
					if state := sale.SKUState(v.State); state != sale.Closed && state != sale.ClosedOut {
						return (&sale.StateError{SKU: v.SKU, State: state, Want: "close out"}).Error()
					}
					return ""
				})
			}
			if report {
				r.Method = http.MethodGet
			}
			defer showWaiting(c.stderr, "closing out "+args[0])()
			raw, err := cl.call(cmd.Context(), r.Method, r.Path, nil)
			if err != nil {
				return err
			}
			var kept service.CloseoutReport
			if json.Unmarshal(raw, &kept) != nil || kept.SKU == "" {
				return notWhat("a close-out report")
			}
			return c.fields(raw,
				[2]string{"sku", kept.SKU},
				[2]string{"closed out at", moment(&kept.At)},
				[2]string{"total", whole(kept.Books.Total)},
				[2]string{"sold", whole(kept.Books.Sold)},
				[2]string{"unsold", whole(kept.Unsold)},
				[2]string{"paid orders", whole(kept.Books.Paid)},
				[2]string{"closed orders", whole(kept.Books.Closed)},
				[2]string{"path", string(kept.Path)},
			)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, dryHelp)
	reasonFlag(cmd)
	cmd.Flags().BoolVar(&report, "report", false, "show the report that was kept, and change nothing")
	return cmd
}
