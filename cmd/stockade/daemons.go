package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) devCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in this process, with a demo SKU",
		Long: "Runs the service with an in-process Redis and broker and a SQLite file, for trying it out. Ctrl-C stops it;\n" +
			"orders survive. What would need real servers is ignored.",
		Example: "  stockade dev\n  stockade dev -c conf/dev.yaml --set log.level=debug",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := c.load(flags)
			if err != nil {
				return err
			}
			return c.runDev(cmd.Context(), loaded.Config)
		},
	}
	flags.register(cmd)
	return cmd
}

func (c *cli) serveCommand() *cobra.Command {
	var flags configFlags
	var check bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run one node with real Redis, MySQL and RabbitMQ",
		Example: "  stockade serve -c conf/serve.yaml\n  stockade serve -c conf/serve.yaml --check-config",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				if err := c.checkConfig(flags); err != nil {
					return err
				}
			}
			loaded, err := c.load(flags)
			if err != nil {
				return err
			}
			if err := servable(loaded.Config); err != nil || check {
				return err
			}
			return c.runServe(cmd.Context(), loaded.Config)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&check, "check-config", false, "only say what is wrong with the configuration")
	return cmd
}

func (c *cli) migrateCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Bring the database's schema up to date",
		Example: "  stockade migrate -c conf/serve.yaml",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := c.load(flags)
			if err != nil {
				return err
			}
			return c.runMigrate(cmd.Context(), loaded.Config)
		},
	}
	flags.register(cmd)
	return cmd
}
