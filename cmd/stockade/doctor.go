package main

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// What doctor answers when it could look.
const (
	doctorWarnings = 1
	doctorFailures = 2
)

func (c *cli) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [SKU...]",
		Short: "Check an installation before a sale: servers, settings, stock, queues, clocks, alerts",
		Long: "The node that is asked checks its Redis, MySQL and RabbitMQ, the SKUs that are named, or all that are loaded, open or\n" +
			"paused, the operator's switches, and the monitoring. Each line says what was seen and what to do; the page of\n" +
			"conf/runbook/ that it names says more. Exit status: 0 all is well, 1 warnings, 2 failures; others as everywhere.",
		Example: "  stockade doctor\n  stockade doctor demo -o json\n  stockade doctor demo other && stockade sku open demo",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			path := "/admin/v1/doctor"
			if len(args) > 0 {
				for _, id := range args {
					if _, err := skuPath(id); err != nil {
						return err
					}
				}
				path += "?" + url.Values{"sku": args}.Encode()
			}
			defer showWaiting(c.stderr, "examining")()
			raw, err := cl.call(cmd.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			var found service.Examination
			if json.Unmarshal(raw, &found) != nil || len(found.Findings) == 0 {
				return notWhat("an examination")
			}
			if err := c.printExamination(raw, found); err != nil {
				return err
			}
			switch found.Level {
			case sale.LevelOK:
				return nil
			case sale.LevelWarn:
				return fail(doctorWarnings, errSilent)
			}
			return fail(doctorFailures, errSilent)
		},
	}
	cmd.Args = cobra.ArbitraryArgs
	c.adminFlag(cmd)
	return cmd
}

func (c *cli) printExamination(raw json.RawMessage, e service.Examination) error {
	if c.format == "json" {
		return c.print(result{objects: []any{raw}, single: true})
	}
	r := result{header: []string{"LEVEL", "CHECK", "OF", "SEEN", "DO"}}
	for _, f := range e.Findings {
		do := "-"
		if f.Do != "" {
			do = f.Do + " (" + f.Runbook + ")"
		}
		r.add(f, string(f.Level), string(f.Check), firstOf(f.Subject, "-"), oneLine(f.Seen), oneLine(do))
	}
	return c.print(r)
}
