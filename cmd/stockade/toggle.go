package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
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
	group.AddCommand(c.toggleListCommand(), c.toggleSetCommand(), c.toggleUnsetCommand())
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
}

func (c *cli) toggleSetCommand() *cobra.Command {
	var body newToggle
	var span time.Duration
	var dry bool
	cmd := &cobra.Command{
		Use:   "set NAME VALUE --reason TEXT",
		Short: "Set a toggle for all nodes",
		Long:  toggleHelp(),
		Example: "  stockade toggle set entrance closed --reason wrong-price\n" +
			"  stockade toggle set rate_scale 50 --reason overload --for 10m\n" +
			"  stockade toggle set breaker.lane.127.0.0.1:6379 open --reason sick-disk\n" +
			"  stockade toggle set path mysql --sku demo --reason redis-is-down\n" +
			"  stockade toggle set durability journal --sku demo --reason slow-disk\n" +
			"  stockade toggle set relay pause --reason drill --dry-run",
		Args: exactArgs("NAME", "VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			if span == 0 && cmd.Flags().Changed("for") {
				return fail(exitData, errors.New("--for: must be a duration such as 10m; leave it out to stay"))
			}
			if err := body.complete(args[0], args[1], span); err != nil {
				return err
			}
			r := request{Method: http.MethodPut, Path: togglesPath + "/" + url.PathEscape(args[0]), Body: body}
			if !dry {
				raw, err := cl.call(cmd.Context(), r.Method, r.Path, r.Body)
				if err != nil {
					return err
				}
				return errors.Join(c.printChange(raw), c.overruled(raw, args[0], body.Scope, args[1]))
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
	cmd.Flags().StringVar(&body.Scope, "sku", "", "only for this SKU")
	cmd.Flags().DurationVar(&span, "for", 0, "end by itself after this time, such as 10m (default: stay)")
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
	case name == sale.TogglePath && span > 0:
		return fail(exitUsage, errors.New("--for: a path stays until it is changed"))
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
	return nil
}

// toggleHelp lists what can be set.
func toggleHelp() string {
	var text strings.Builder
	text.WriteString("Sets a toggle for all SKUs; those marked with * may be set for a single SKU.\n\n")
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, kind := range sale.ToggleKinds() {
		values, mark := strings.Join(kind.Values, ", "), " "
		if kind.Values == nil {
			values = "0 to 100"
		}
		if kind.PerSKU {
			mark = "*"
		}
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", mark, kind.Name, values, kind.Meaning)
	}
	_ = w.Flush() // a Builder takes everything
	text.WriteString("\nbreaker.lane.HOST:PORT forces the lane to one Redis master, breaker.lane.redis the only one without cluster. The path is changed before the answer, for one SKU or for\n" +
		"every SKU with stock, and stays until it is changed; a node's toggles.file cannot set it.")
	return text.String()
}

func (c *cli) toggleUnsetCommand() *cobra.Command {
	var sku string
	var dry bool
	cmd := &cobra.Command{
		Use:     "unset NAME",
		Short:   "Forget what is stored of a toggle, for one SKU or for all",
		Long:    "Forgets what was set: for a SKU the word for all SKUs counts again, for all SKUs the default.",
		Example: "  stockade toggle unset entrance --sku demo\n  stockade toggle unset rate_scale --dry-run",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			if _, known := sale.ToggleKindOf(args[0]); !known {
				return fail(exitData, fmt.Errorf("there is no toggle %q; stockade toggle list shows them", args[0]))
			}
			r := request{Method: http.MethodDelete, Path: togglesPath + "/" + url.PathEscape(args[0])}
			if sku != "" {
				if _, err := skuPath(sku); err != nil {
					return err
				}
				r.Path += "?scope=" + url.QueryEscape(sku)
			}
			if !dry {
				raw, err := cl.call(cmd.Context(), r.Method, r.Path, nil)
				if err != nil {
					return err
				}
				return c.printToggles(raw)
			}
			now, err := cl.call(cmd.Context(), http.MethodGet, togglesPath, nil)
			if err != nil {
				return err
			}
			return c.printDryRun(dryRun{Requests: []request{r}, Now: now, summary: currently(now, args[0], sku)})
		},
	}
	cmd.Flags().StringVar(&sku, "sku", "", "only for this SKU")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent and the toggle as it is, and change nothing")
	reasonFlag(cmd)
	return cmd
}

// overruled says on standard error when a toggle that was set has no effect on the node that was asked.
func (c *cli) overruled(raw json.RawMessage, name, scope, value string) error {
	all, err := parseToggles(raw)
	if err != nil || name == sale.TogglePath {
		return err
	}
	for _, t := range slices.Backward(all.Toggles) { // what is said of one SKU comes after what is said of all
		if t.Name != name || (t.Scope != "" && t.Scope != scope) {
			continue
		}
		if t.Value != value {
			_, err = fmt.Fprintf(c.stderr, "stockade: stored, but %s is %s on the node that was asked, by its %s\n", name, t.Value, t.Source)
		}
		return err
	}
	return nil
}

// printChange prints what a change left behind: of the path, what became of each SKU.
func (c *cli) printChange(raw json.RawMessage) error {
	all, err := parseToggles(raw)
	if err != nil {
		return err
	}
	if len(all.Moves) == 0 {
		return c.printToggles(raw)
	}
	r := result{header: []string{"SKU", "PATH", "ERROR"}}
	failed := 0
	for _, m := range all.Moves {
		r.add(m, m.SKU, m.Path, oneLine(firstOf(m.Error, "-")))
		if m.Error != "" {
			failed++
		}
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return fail(exitTemporary, fmt.Errorf("%d of %d SKUs are not on the path; set it again to go on", failed, len(all.Moves)))
	}
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
	r := result{header: []string{"TOGGLE", "SKU", "VALUE", "SOURCE", "SINCE", "UNTIL", "ACTOR", "REASON", "RUNBOOK"}}
	for _, t := range all.Toggles {
		r.add(t, t.Name, firstOf(t.Scope, "-"), t.Value, string(t.Source), moment(&t.ChangedAt), moment(&t.Until), oneLine(firstOf(t.Actor, "-")), oneLine(firstOf(t.Reason, "-")), firstOf(t.Runbook, "-"))
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
