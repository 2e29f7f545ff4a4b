package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
)

// Bounds of the demo's flags: all of it runs in this process.
const (
	maxDemoBuyers      = 1_000_000
	maxDemoConnections = 4096
)

func (c *cli) demoCommand() *cobra.Command {
	var flags configFlags
	r := rush{buyers: 10_000, units: 500, connections: 1000}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Let very many buyers go for few units at once, and check the books",
		Long: "Starts an embedded node of its own on free ports, with its data in a temporary folder, lets every buyer ask for\n" +
			"one unit at the same moment over HTTP, and compares what buyers were told with what the books say.\n" +
			"Fails with exit status 1 if they do not agree.",
		Example: "  stockade demo\n  stockade demo --buyers 50000 --units 1000 -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			loaded, err := c.load(flags)
			if err != nil {
				return err
			}
			loaded.Config.Log.Level = "error" // ten thousand refusals are not news here
			log, err := c.logger(loaded.Config)
			if err != nil {
				return err
			}
			rep, err := runDemo(cmd.Context(), loaded.Config, log, r, c.stderr)
			if err != nil {
				return fail(exitUnavailable, err)
			}
			if err := c.printReport(rep); err != nil {
				return err
			}
			if !rep.Agree {
				return fail(exitRefused, errBooks)
			}
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&r.buyers, "buyers", r.buyers, "distinct buyers, each going for one unit")
	cmd.Flags().Int64Var(&r.units, "units", r.units, "units on sale")
	cmd.Flags().IntVar(&r.connections, "connections", r.connections, "HTTP connections that the buyers share")
	return cmd
}

func (r rush) check() error {
	for _, f := range []struct {
		name        string
		value, most int64
	}{
		{"buyers", int64(r.buyers), maxDemoBuyers},
		{"units", r.units, sale.MaxTotal},
		{"connections", int64(r.connections), maxDemoConnections},
	} {
		if f.value < 1 || f.value > f.most {
			return fail(exitUsage, fmt.Errorf("--%s: must be from 1 to %d", f.name, f.most))
		}
	}
	return nil
}

func (c *cli) printReport(r report) error {
	count := func(name string, n any) [2]string { return [2]string{name, fmt.Sprint(n)} }
	pairs := [][2]string{
		count("buyers", r.Buyers), count("accepted", r.Accepted), count("sold out", r.SoldOut), count("other codes", r.Other),
	}
	for _, code := range sale.Codes {
		if n := r.Codes[code.String()]; n > 0 && code != sale.Accepted && code != sale.SoldOut {
			pairs = append(pairs, count("  "+code.String(), n))
		}
	}
	if n := r.Codes[noAnswer]; n > 0 {
		pairs = append(pairs, count("  "+noAnswer, n))
	}
	verdict := "yes"
	if !r.Agree {
		verdict = "NO"
	}
	pairs = append(pairs,
		count("asked again", r.Retried),
		count("p50", fmt.Sprintf("%.1f ms", r.P50Ms)), count("p99", fmt.Sprintf("%.1f ms", r.P99Ms)),
		count("orders written", r.Orders), count("oversold", r.Oversold), count("lost", r.Lost),
		count("duplicate", r.Duplicate), count("stranded", r.Stranded), count("books agree", verdict),
	)
	return c.fields(r, pairs...)
}
