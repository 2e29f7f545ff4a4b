package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stockade/conf"
)

// notConfig are variables that start like the configuration's and belong to this tool or to the test servers.
var notConfig = []string{
	adminEnv, publicEnv, secretEnv, adminTokenEnv, caFileEnv, "STOCKADE_TEST_*", "STOCKADE_REDIS_PORT", "STOCKADE_MYSQL_PORT", "STOCKADE_AMQP_PORT",
	"STOCKADE_EPMD_PORT", "STOCKADE_DIST_PORT",
}

// configFlags are the flags of every command that reads the configuration.
type configFlags struct {
	file string
	set  []string
}

func (f *configFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "configuration file (YAML)")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override one setting, key=value; may be repeated")
}

// load reads the configuration. An error lists everything that is wrong.
func (c *cli) load(f configFlags) (conf.Loaded, error) {
	loaded, err := conf.Load(conf.Sources{File: f.file, Env: c.env, NotOurs: notConfig, Set: f.set})
	if err != nil {
		return loaded, fail(exitConfig, err)
	}
	c.config = loaded.Config
	return loaded, nil
}

func (c *cli) configCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "config",
		Short: "Show, check and explain the configuration",
	}
	group.AddCommand(c.configShowCommand(), c.configCheckCommand(), c.configReferenceCommand())
	return group
}

func (c *cli) configShowCommand() *cobra.Command {
	var flags configFlags
	var origin bool
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Print every setting, secrets masked",
		Example: "  stockade config show\n  stockade config show -c conf/serve.yaml --origin",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			loaded, err := c.load(flags)
			if err != nil {
				return err
			}
			r := result{header: []string{"KEY", "VALUE"}}
			if origin {
				r.header = append(r.header, "ORIGIN")
			}
			for _, v := range loaded.Values() {
				row := []string{v.Key, text(v.Value)}
				if origin {
					row = append(row, v.Origin)
				} else {
					v.Origin = ""
				}
				r.add(v, row...)
			}
			return c.print(r)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&origin, "origin", false, "tell where each value comes from")
	return cmd
}

// text is a setting's value in a table.
func text(v any) string {
	if list, ok := v.([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v)
}

func (c *cli) configCheckCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Say what is wrong with the configuration; silent success",
		Example: "  stockade config check -c conf/serve.yaml",
		Args:    exactArgs(),
		RunE:    func(*cobra.Command, []string) error { return c.checkConfig(flags) },
	}
	flags.register(cmd)
	return cmd
}

// checkConfig prints problems as rows when they are asked for as data, and as an error otherwise.
func (c *cli) checkConfig(flags configFlags) error {
	_, err := c.load(flags)
	var problems conf.Problems
	if !errors.As(err, &problems) || c.format == "table" || c.format == "none" {
		return err
	}
	r := result{}
	for _, p := range problems {
		r.add(p)
	}
	if err := c.print(r); err != nil {
		return err
	}
	return fail(exitConfig, errSilent)
}

func (c *cli) configReferenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "reference",
		Short:   "Explain every setting: type, default, what is allowed, meaning",
		Example: "  stockade config reference\n  stockade config reference -o json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if c.format == "table" {
				_, err := io.WriteString(c.stdout, conf.Reference())
				return err
			}
			r := result{}
			for _, e := range conf.Entries() {
				r.add(e)
			}
			return c.print(r)
		},
	}
}
