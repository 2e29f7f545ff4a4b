package main

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
)

const auditPath = "/admin/v1/audit"

func (c *cli) auditlogCommand() *cobra.Command {
	var actor, action, target, after string
	var limit int
	cmd := &cobra.Command{
		Use:   "auditlog",
		Short: "List who changed what, and why, the newest first",
		Long: "Every write of an operator is one line, also one that was refused: STATUS is that of the answer. What the service did\n" +
			"by itself has the actor " + sale.ServiceActor + " and no status.",
		Example: "  stockade auditlog --limit 20\n  stockade auditlog --target demo --action sku.pause -o jsonl",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			filter := url.Values{}
			for name, value := range map[string]string{"actor": actor, "action": action, "target": target} {
				if value != "" {
					filter.Set(name, value)
				}
			}
			path := auditPath
			if len(filter) > 0 {
				path += "?" + filter.Encode()
			}
			rows, err := cl.pages(cmd.Context(), path, "entries", after, limit)
			if err != nil {
				return err
			}
			r := result{header: []string{"SEQ", "AT", "ACTOR", "ACTION", "TARGET", "STATUS", "REASON", "DETAIL"}}
			for _, raw := range rows {
				var e sale.AuditEntry
				if err := json.Unmarshal(raw, &e); err != nil || e.Seq == 0 {
					return notWhat("a line of the audit log")
				}
				status := "-"
				if e.Status != 0 {
					status = strconv.Itoa(e.Status)
				}
				r.add(raw, whole(e.Seq), moment(&e.At), oneLine(e.Actor), oneLine(e.Action), oneLine(firstOf(e.Target, "-")), status,
					oneLine(e.Reason), oneLine(firstOf(e.Detail, "-")))
			}
			return c.print(r)
		},
	}
	c.adminFlag(cmd)
	cmd.Flags().StringVar(&actor, "actor", "", "only of this actor: the name of a token, or "+sale.ServiceActor)
	cmd.Flags().StringVar(&action, "action", "", "only this action, such as sku.open")
	cmd.Flags().StringVar(&target, "target", "", "only about this, such as a SKU or an order")
	pageFlags(cmd, &after, &limit)
	return cmd
}
