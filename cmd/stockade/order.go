package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const ordersPath = "/v1/orders"

func (c *cli) orderCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "order",
		Short: "Look at orders, cancel and pay them",
		Long: "Asks the public API in a buyer's name, as a trusted gateway does, or, for one order without a buyer, the admin\n" +
			"API.",
	}
	group.PersistentFlags().String("buyer", "", "id of the buyer")
	group.PersistentFlags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	group.PersistentFlags().String("public", "", "URL of the public API (environment: "+publicEnv+"; default "+defaultPublic+")")
	group.AddCommand(c.orderShowCommand(), c.orderListCommand(), c.orderCancelCommand(), c.orderPayCommand())
	return group
}

// public connects a command to the public API in a buyer's name.
func (c *cli) public(cmd *cobra.Command) (*client, string, error) {
	buyer, _ := cmd.Flags().GetString("buyer")
	if buyer == "" {
		return nil, "", fail(exitUsage, errors.New("--buyer is required"))
	}
	given, _ := cmd.Flags().GetString("public")
	cl, err := c.newClient("public", given, publicEnv, defaultPublic)
	return cl, buyer, err
}

func (c *cli) orderShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ORDER [--buyer BUYER]",
		Short: "Show one order",
		Example: "  stockade order show 0198a1b2-0000-7000-8000-000000000000\n" +
			"  stockade order show 0198a1b2-0000-7000-8000-000000000000 --buyer u1",
		Args: exactArgs("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, header, err := c.orderAccess(cmd, args[0])
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), http.MethodGet, path, nil, header...)
			if err != nil {
				return err
			}
			return c.printOrder(raw)
		},
	}
}

func (c *cli) printOrder(raw json.RawMessage) error {
	o, err := parseOrder(raw)
	if err != nil {
		return err
	}
	return c.fields(raw,
		[2]string{"order", o.ID.String()},
		[2]string{"sku", o.SKU},
		[2]string{"buyer", o.Buyer},
		[2]string{"quantity", whole(o.Quantity)},
		[2]string{"state", stateOf(o)},
		[2]string{"accepted at", o.AcceptedAt.Format(time.RFC3339Nano)},
		[2]string{"expires at", o.ExpiresAt.Format(time.RFC3339Nano)},
	)
}

func (c *cli) orderListCommand() *cobra.Command {
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list --buyer BUYER",
		Short:   "List a buyer's orders in the order of their ids",
		Example: "  stockade order list --buyer u1\n  stockade order list --buyer u1 --limit 5 -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, buyer, err := c.public(cmd)
			if err != nil {
				return err
			}
			rows, err := cl.pages(cmd.Context(), ordersPath, "orders", after, limit, handler.BuyerHeader, buyer)
			if err != nil {
				return err
			}
			r := result{header: []string{"ORDER", "SKU", "QUANTITY", "STATE", "ACCEPTED AT", "EXPIRES AT"}}
			for _, raw := range rows {
				o, err := parseOrder(raw)
				if err != nil {
					return err
				}
				r.add(raw, o.ID.String(), o.SKU, whole(o.Quantity), stateOf(o), moment(&o.AcceptedAt), moment(&o.ExpiresAt))
			}
			return c.print(r)
		},
	}
	pageFlags(cmd, &after, &limit)
	return cmd
}

func parseOrder(raw json.RawMessage) (sale.Order, error) {
	var o sale.Order
	if err := json.Unmarshal(raw, &o); err != nil || o.State == "" {
		return o, notWhat("an order")
	}
	return o, nil
}

func stateOf(o sale.Order) string {
	if o.Reason == "" {
		return string(o.State)
	}
	return string(o.State) + " (" + string(o.Reason) + ")"
}
