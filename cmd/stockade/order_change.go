package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const (
	adminOrdersPath = "/admin/v1/orders"
	paymentsPath    = "/v1/payments"
	secretEnv       = "STOCKADE_PAYMENT_SECRET"
)

// orderAccess is the API that a command about one order asks: the public one in its buyer's name, or, without a buyer,
// the admin API.
func (c *cli) orderAccess(cmd *cobra.Command, arg string) (cl *client, path string, header []string, err error) {
	id, err := sale.ParseOrderID(arg)
	if err != nil {
		return nil, "", nil, fail(exitData, fmt.Errorf("ORDER %q: must be a UUID of 36 characters", arg))
	}
	if buyer, _ := cmd.Flags().GetString("buyer"); buyer == "" {
		cl, err = c.admin(cmd)
		return cl, adminOrdersPath + "/" + id.String(), nil, err
	}
	cl, buyer, err := c.public(cmd)
	return cl, ordersPath + "/" + id.String(), []string{handler.BuyerHeader, buyer}, err
}

func (c *cli) orderCancelCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "cancel ORDER [--buyer BUYER]",
		Short: "Close an order that is not paid, and put its units back on sale",
		Long: "Asks the admin API; with --buyer the public one, in that buyer's name. An order that is closed already stays as it\n" +
			"is; one that is paid is refused.",
		Example: "  stockade order cancel 0198a1b2-0000-7000-8000-000000000000\n" +
			"  stockade order cancel 0198a1b2-0000-7000-8000-000000000000 --buyer u1 --dry-run",
		Args: exactArgs("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, header, err := c.orderAccess(cmd, args[0])
			if err != nil {
				return err
			}
			r := request{Method: http.MethodPost, Path: path + "/cancel"}
			if dry {
				now, err := cl.call(cmd.Context(), http.MethodGet, path, nil, header...)
				if err != nil {
					return err
				}
				return c.dryOrder(r, now, func(o sale.Order) string {
					return map[sale.OrderState]string{
						sale.OrderPaid:   "it is paid",
						sale.OrderQueued: "it is still queued: ask again",
					}[o.State]
				})
			}
			raw, err := cl.call(cmd.Context(), r.Method, r.Path, nil, header...)
			if err != nil {
				return err
			}
			return c.printOrder(raw)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the order as it is, and change nothing")
	reasonFlag(cmd)
	return cmd
}

// dryOrder shows a request about an order, the order as it is, and why the request would be refused.
func (c *cli) dryOrder(r request, now json.RawMessage, refused func(sale.Order) string) error {
	o, err := parseOrder(now)
	if err != nil {
		return err
	}
	return c.printDryRun(dryRun{
		Requests: []request{r}, Now: now, Refused: refused(o),
		summary: fmt.Sprintf("%s is %s: %d of %s for %s", o.ID, stateOf(o), o.Quantity, o.SKU, o.Buyer),
	})
}

func (c *cli) orderPayCommand() *cobra.Command {
	var secret, payment string
	var dry bool
	cmd := &cobra.Command{
		Use:   "pay ORDER --secret SECRET",
		Short: "Send the callback of a payment, for demos and drills",
		Long: "Signs a callback as the payment provider does, after Standard Webhooks, and sends it to the public API. The\n" +
			"secret is better given by the environment (" + secretEnv + ") than by the flag, which others can see.",
		Example: "  " + "stockade order pay 0198a1b2-0000-7000-8000-000000000000 --secret whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n" +
			"  stockade order pay 0198a1b2-0000-7000-8000-000000000000 --payment pay_42 --dry-run",
		Args: exactArgs("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := sale.ParseOrderID(args[0])
			if err != nil {
				return fail(exitData, fmt.Errorf("ORDER %q: must be a UUID of 36 characters", args[0]))
			}
			if payment == "" {
				payment = "manual-" + id.String() // paying twice by mistake is paying once
			}
			body, err := json.Marshal(map[string]string{"payment_id": payment, "order_id": id.String()})
			if err != nil {
				return err
			}
			r := request{Method: http.MethodPost, Path: paymentsPath, Body: json.RawMessage(body)}
			if dry {
				return c.printDryRun(dryRun{Requests: []request{r}, summary: "the public API tells an order's buyer alone"})
			}
			header, err := c.signPayment(secret, body)
			if err != nil {
				return err
			}
			given, _ := cmd.Flags().GetString("public")
			cl, err := c.newClient("public", given, publicEnv, defaultPublic)
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), r.Method, r.Path, r.Body, header...)
			if err != nil {
				return err
			}
			return c.printOrder(raw)
		},
	}
	cmd.Flags().StringVar(&secret, "secret", "", "secret of the payment provider, whsec_… (environment: "+secretEnv+")")
	cmd.Flags().StringVar(&payment, "payment", "", "the provider's id of the payment (default: made from the order's id)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent, and change nothing")
	return cmd
}

// signPayment makes the headers of a callback.
func (c *cli) signPayment(secret string, body []byte) ([]string, error) {
	if value, ok := c.lookup(secretEnv); secret == "" && ok {
		secret = value
	}
	if secret == "" {
		return nil, fail(exitUsage, errors.New("--secret or "+secretEnv+" is required"))
	}
	header, err := handler.SignWebhook(secret, "msg_"+uuid.NewString(), time.Now(), body)
	if err != nil {
		return nil, fail(exitData, fmt.Errorf("--secret: %w", err))
	}
	return header, nil
}
