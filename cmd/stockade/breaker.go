package main

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const breakersPath = "/admin/v1/breakers"

func (c *cli) breakerCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "breaker",
		Short: "See what keeps sick servers and overload away",
		Long: "Every node has breakers of its own: one for each Redis master, and those before MySQL, before RabbitMQ, against a\n" +
			"backlog and against overload. They open and close by themselves; a toggle forces them on all nodes:\n\n" +
			"  stockade toggle set breaker.NAME open|closed|auto --reason TEXT",
	}
	group.PersistentFlags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	group.AddCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the breakers of the node that is asked",
		Example: "  stockade breaker list\n  stockade breaker list --admin http://10.0.0.7:8081 -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), http.MethodGet, breakersPath, nil)
			if err != nil {
				return err
			}
			return c.printBreakers(raw)
		},
	})
	return group
}

func (c *cli) printBreakers(raw json.RawMessage) error {
	var all handler.BreakersJSON
	if err := json.Unmarshal(raw, &all); err != nil || all.Breakers == nil {
		return notWhat("a list of breakers")
	}
	r := result{header: []string{"BREAKER", "STATE", "FORCED", "CHANGES", "REFUSED", "SINCE", "WHY"}}
	for _, b := range all.Breakers {
		forced := b.Forced
		if forced == sale.BreakerAuto {
			forced = "-"
		}
		r.add(b, b.Name, b.State, forced, whole(b.Changes), whole(b.Refused), moment(&b.Since), oneLine(firstOf(b.Why, "-")))
	}
	return c.print(r)
}
