package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const togglesPath = "/admin/v1/toggles"

func (c *cli) toggleCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "toggle",
		Short: "See and set the operator's switches",
		Long: "Toggles are set for all nodes, and audited. What a node's own toggles.file says wins on that node, and works while\n" +
			"Redis and MySQL are down.",
	}
	group.PersistentFlags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	group.AddCommand(c.toggleListCommand(), c.toggleSetCommand())
	return group
}

func (c *cli) toggleListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List every toggle as it is in effect on the node that is asked",
		Example: "  stockade toggle list\n  stockade toggle list -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), http.MethodGet, togglesPath, nil)
			if err != nil {
				return err
			}
			return c.printToggles(raw)
		},
	}
}

// newToggle is the body that sets a toggle.
type newToggle struct {
	Value  string `json:"value"`
	Scope  string `json:"scope,omitempty"`
	Reason string `json:"reason"`
	For    string `json:"for,omitempty"`
	Actor  string `json:"actor,omitempty"`
}

func (c *cli) toggleSetCommand() *cobra.Command {
	var body newToggle
	var span time.Duration
	var dry bool
	cmd := &cobra.Command{
		Use:   "set NAME VALUE --reason TEXT",
		Short: "Set a toggle for all nodes",
		Long: "Sets a toggle for all SKUs, or durability for one of them:\n\n" +
			"  durability  outbox, journal   journal: accept before MySQL has the order, for when MySQL is down\n" +
			"  relay       run, pause        publishing of accepted orders\n" +
			"  consumer    run, pause        writing of orders\n" +
			"  expiry      run, pause        closing of orders that were not paid in time\n" +
			"  reshare     run, pause        reshares that start by themselves",
		Example: "  stockade toggle set durability journal --reason maintenance --for 10m\n" +
			"  stockade toggle set durability journal --sku demo --reason slow-disk\n" +
			"  stockade toggle set relay pause --reason drill --dry-run",
		Args: exactArgs("NAME", "VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			if err := body.complete(args[0], args[1], span); err != nil {
				return err
			}
			r := request{Method: http.MethodPut, Path: togglesPath + "/" + args[0], Body: body}
			if !dry {
				raw, err := cl.call(cmd.Context(), r.Method, r.Path, r.Body)
				if err != nil {
					return err
				}
				return c.printToggles(raw)
			}
			now, err := cl.call(cmd.Context(), http.MethodGet, togglesPath, nil)
			if err != nil {
				return err
			}
			plan := dryRun{Requests: []request{r}, Now: now, summary: currently(now, args[0], body.Scope)}
			if kind, _ := sale.ToggleKindOf(args[0]); !kind.Allows(args[1]) {
				plan.Refused = "the value must be " + kind.Allowed()
			}
			return c.printDryRun(plan)
		},
	}
	cmd.Flags().StringVar(&body.Reason, "reason", "", "why, for those who look later (required)")
	cmd.Flags().StringVar(&body.Scope, "sku", "", "only for this SKU (durability)")
	cmd.Flags().DurationVar(&span, "for", 0, "end by itself after this time, such as 10m (default: stay)")
	cmd.Flags().StringVar(&body.Actor, "actor", "", "who does it (default: the user of this shell)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the toggle as it is, and change nothing")
	return cmd
}

// complete fills in what follows from the command line, and refuses what cannot be.
func (t *newToggle) complete(name, value string, span time.Duration) error {
	if _, known := sale.ToggleKindOf(name); !known {
		return fail(exitData, fmt.Errorf("there is no toggle %q; stockade toggle list shows them", name))
	}
	switch {
	case t.Reason == "":
		return fail(exitUsage, errors.New("--reason is required"))
	case span < 0:
		return fail(exitData, errors.New("--for: must be a duration such as 10m"))
	case span > 0:
		t.For = span.String()
	}
	if t.Scope != "" {
		if _, err := skuPath(t.Scope); err != nil {
			return err
		}
	}
	t.Value = value
	t.Actor = firstOf(t.Actor, loginName())
	return nil
}

func parseToggles(raw json.RawMessage) (handler.TogglesJSON, error) {
	var all handler.TogglesJSON
	if err := json.Unmarshal(raw, &all); err != nil || len(all.Toggles) == 0 {
		return all, notWhat("a list of toggles")
	}
	return all, nil
}

func (c *cli) printToggles(raw json.RawMessage) error {
	all, err := parseToggles(raw)
	if err != nil {
		return err
	}
	r := result{header: []string{"TOGGLE", "SKU", "VALUE", "SOURCE", "UNTIL", "ACTOR", "REASON"}}
	for _, t := range all.Toggles {
		r.add(t, t.Name, firstOf(t.Scope, "-"), t.Value, string(t.Source), moment(&t.Until), oneLine(firstOf(t.Actor, "-")), oneLine(firstOf(t.Reason, "-")))
	}
	return c.print(r)
}

// currently says how a toggle is now.
func currently(raw json.RawMessage, name, scope string) string {
	all, err := parseToggles(raw)
	if err != nil {
		return "not known"
	}
	now := "not known"
	for _, t := range all.Toggles {
		if t.Name == name && (t.Scope == "" || t.Scope == scope) {
			now = fmt.Sprintf("%s is %s (%s)", name, t.Value, t.Source)
		}
	}
	return now
}
