package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
)

const deadPath = "/admin/v1/dead"

func (c *cli) deadCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "dead",
		Short: "Look at messages that could not be turned into orders, and deal with them",
		Long: "A dead letter is OPEN until it is replayed (sent to the order queue once more) or dropped (its order, if it is not\n" +
			"written, is closed and its units go back on sale).",
	}
	group.PersistentFlags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	group.AddCommand(c.deadListCommand(), c.deadShowCommand(),
		c.deadHandleCommand("replay", "Send a dead letter to the order queue once more"),
		c.deadHandleCommand("drop", "Throw a dead letter away and compensate its order"))
	return group
}

func (c *cli) deadListCommand() *cobra.Command {
	var state, sku, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List dead letters, the oldest first",
		Example: "  stockade dead list --state OPEN\n  stockade dead list --sku demo --limit 10 -o jsonl",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			filter := url.Values{}
			for name, value := range map[string]string{"state": state, "sku": sku} {
				if value != "" {
					filter.Set(name, value)
				}
			}
			path := deadPath
			if len(filter) > 0 {
				path += "?" + filter.Encode()
			}
			rows, err := cl.pages(cmd.Context(), path, "dead_letters", after, limit)
			if err != nil {
				return err
			}
			r := result{header: []string{"SEQ", "STATE", "SKU", "ORDER", "ATTEMPTS", "AT", "ERROR"}}
			for _, raw := range rows {
				d, err := parseLetter(raw)
				if err != nil {
					return err
				}
				r.add(raw, whole(d.Seq), string(d.State), firstOf(d.SKU, "-"), orderOf(d), strconv.Itoa(d.Attempts), moment(&d.At), oneLine(d.Error))
			}
			return c.print(r)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in this state: OPEN, REPLAYED, COMPENSATED or DROPPED")
	cmd.Flags().StringVar(&sku, "sku", "", "only those of this SKU")
	pageFlags(cmd, &after, &limit)
	return cmd
}

func (c *cli) deadShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show SEQ",
		Short:   "Show one dead letter with its body",
		Example: "  stockade dead show 7\n  stockade dead show 7 -o json",
		Args:    exactArgs("SEQ"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.deadAccess(cmd, args[0])
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			return c.printLetter(raw)
		},
	}
}

func (c *cli) deadHandleCommand(name, short string) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:     name + " SEQ",
		Short:   short,
		Example: fmt.Sprintf("  stockade dead %s 7\n  stockade dead %s 7 --dry-run", name, name),
		Args:    exactArgs("SEQ"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.deadAccess(cmd, args[0])
			if err != nil {
				return err
			}
			r := request{Method: http.MethodPost, Path: path + "/" + name}
			if !dry {
				raw, err := cl.call(cmd.Context(), r.Method, r.Path, r.Body)
				if err != nil {
					return err
				}
				return c.printLetter(raw)
			}
			now, err := cl.call(cmd.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			d, err := parseLetter(now)
			if err != nil {
				return err
			}
			plan := dryRun{
				Requests: []request{r}, Now: now,
				summary: fmt.Sprintf("dead letter %d is %s, of order %s", d.Seq, d.State, orderOf(d)),
			}
			if d.State != sale.DeadOpen {
				plan.Refused = "it is not " + string(sale.DeadOpen)
			}
			return c.printDryRun(plan)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the dead letter as it is, and change nothing")
	reasonFlag(cmd)
	return cmd
}

// deadAccess connects a command about one dead letter to the admin API.
func (c *cli) deadAccess(cmd *cobra.Command, arg string) (*client, string, error) {
	seq, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || seq < 1 {
		return nil, "", fail(exitData, fmt.Errorf("SEQ %q: must be the number of a dead letter", arg))
	}
	cl, err := c.admin(cmd)
	return cl, deadPath + "/" + strconv.FormatInt(seq, 10), err
}

func parseLetter(raw json.RawMessage) (sale.DeadLetter, error) {
	var d sale.DeadLetter
	if err := json.Unmarshal(raw, &d); err != nil || d.Seq == 0 {
		return d, notWhat("a dead letter")
	}
	return d, nil
}

func (c *cli) printLetter(raw json.RawMessage) error {
	d, err := parseLetter(raw)
	if err != nil {
		return err
	}
	return c.fields(raw,
		[2]string{"seq", whole(d.Seq)},
		[2]string{"state", string(d.State)},
		[2]string{"handled by", oneLine(firstOf(d.HandledBy, "-"))},
		[2]string{"handled at", moment(&d.HandledAt)},
		[2]string{"message", oneLine(d.MessageID)},
		[2]string{"sku", firstOf(d.SKU, "-")},
		[2]string{"order", orderOf(d)},
		[2]string{"error", oneLine(d.Error)},
		[2]string{"source", oneLine(d.Source)},
		[2]string{"attempts", strconv.Itoa(d.Attempts)},
		[2]string{"at", moment(&d.At)},
		[2]string{"content type", oneLine(d.ContentType)},
		[2]string{"body", oneLine(string(d.Body))},
	)
}

func orderOf(d sale.DeadLetter) string {
	if d.Order == nil {
		return "-"
	}
	return d.Order.String()
}
