package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const nodePath = "/admin/v1/node"

func (c *cli) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Show what a node counts and knows of itself",
		Long: "Shows the figures of the node that is asked, since its start: answers to purchases by code, breakers, load, backlog, and\n" +
			"whether it goes by its toggles.file. It answers while Redis and MySQL are down.",
		Example: "  stockade node\n  stockade node --admin http://10.0.0.7:8081 -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			raw, err := cl.call(cmd.Context(), http.MethodGet, nodePath, nil)
			if err != nil {
				return err
			}
			return c.printNode(raw)
		},
	}
	cmd.Flags().String("admin", "", "URL of the admin API (environment: "+adminEnv+"; default "+defaultAdmin+")")
	return cmd
}

func (c *cli) printNode(raw json.RawMessage) error {
	var n handler.NodeJSON
	if err := json.Unmarshal(raw, &n); err != nil || n.Node == "" {
		return notWhat("a node's figures")
	}
	pairs := [][2]string{{"node", n.Node}}
	for _, code := range sale.Codes {
		pairs = append(pairs, [2]string{code.String(), whole(n.Results[code.String()])})
	}
	backlog := "not known"
	if n.Backlog != nil {
		backlog = whole(*n.Backlog)
	}
	file := string(n.TogglesFile.State)
	switch {
	case n.TogglesFile.Error != "":
		file += ": " + oneLine(n.TogglesFile.Error)
	case n.TogglesFile.Path != "":
		file += fmt.Sprintf(" %s, %d toggles", n.TogglesFile.Path, n.TogglesFile.Toggles)
	}
	pairs = append(pairs, [2]string{"in flight", whole(n.InFlight)}, [2]string{"shed", strconv.Itoa(n.AdaptiveShedPercent) + " %"},
		[2]string{"backlog", backlog}, [2]string{"toggles.file", file})
	for _, b := range n.Breakers {
		state := fmt.Sprintf("%s, %d changes", b.State, b.Changes)
		if b.Forced != sale.BreakerAuto && b.Forced != "" {
			state += ", forced " + b.Forced
		}
		pairs = append(pairs, [2]string{"breaker " + b.Name, state})
	}
	return c.fields(raw, pairs...)
}
