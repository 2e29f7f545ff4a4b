package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
	"stockade/conf"
)

// cli is one invocation: what it may write to, and what its environment says.
type cli struct {
	stdin  io.Reader
	stdout io.Writer // results only
	stderr io.Writer // everything else
	env    []string
	faults sale.Faults // of the node that serve runs
	format string      // -o
	config conf.Config // once it is loaded
	typed  string      // the command line, without secrets
	caFile string      // --ca-file
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr, env: env, faults: sale.NoFaults{}}
	return c.execute(ctx, args)
}

func (c *cli) execute(ctx context.Context, args []string) int {
	c.typed = typedLine(args)
	root := c.rootCommand()
	root.SetArgs(negativesLast(root, args))
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fail(exitInterrupted, errors.New("interrupted"))
	}
	code := exitCode(err)
	if err != nil && !errors.Is(err, errSilent) {
		fmt.Fprintf(c.stderr, "stockade: %s\n", c.config.Scrub(strings.TrimSpace(err.Error())))
		if code == exitUsage {
			fmt.Fprintf(c.stderr, "Try `%s --help`.\n", cmd.CommandPath())
		}
	}
	if code == exitUsage && cmd.CommandPath() == "stockade check" {
		return checkUnknown // monitors know no other numbers
	}
	return code
}

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "stockade",
		Short: "Sell one hot SKU to very many buyers without overselling it",
		Long: "Stockade sells hot SKUs: run it with `dev` or `serve`, look after SKUs with `sku`.\n\n" +
			"Results go to standard output in the form that -o asks for, everything else to standard error.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return c.checkFormat()
		},
	}
	root.PersistentFlags().StringVarP(&c.format, "output", "o", "table", "form of the result: "+strings.Join(formats, ", "))
	root.PersistentFlags().StringVar(&c.caFile, "ca-file", "", "PEM file of who signs the service's certificate (environment: "+
		caFileEnv+"; default: who this machine trusts)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// What comes before the flag is the mistake when it should have been a command.
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			return unknownCommand(cmd, words[0])
		}
		return fail(exitUsage, err)
	})
	root.AddCommand(c.devCommand(), c.demoCommand(), c.serveCommand(), c.migrateCommand(),
		c.skuCommand(), c.orderCommand(), c.deadCommand(), c.toggleCommand(), c.nodeCommand(), c.breakerCommand(), c.reshareCommand(), c.reconcileCommand(), c.auditCommand(), c.doctorCommand(),
		c.tokenCommand(), c.auditlogCommand(), c.configCommand(), c.errorsCommand(), c.checkCommand(), c.versionCommand())
	helpForGroups(root)
	withAdminFlags(root)
	return root
}

// helpForGroups makes a command that only groups others refuse unknown ones; cobra would print its help and succeed.
func helpForGroups(cmd *cobra.Command) {
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.SuggestionsMinimumDistance = 2
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		}
	}
	for _, sub := range cmd.Commands() {
		helpForGroups(sub)
	}
}

func unknownCommand(group *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, group.CommandPath())
	if near := group.SuggestionsFor(name); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fail(exitUsage, errors.New(text))
}

var negative = regexp.MustCompile(`^-[0-9]+$`)

// negativesLast moves the negative number of `sku adjust` behind a --, where it is not taken for a flag.
func negativesLast(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.CommandPath() != "stockade sku adjust" {
		return args
	}
	var kept, moved []string
	for i, arg := range args {
		switch {
		case arg == "--":
			return append(append(kept, args[i:]...), moved...)
		case negative.MatchString(arg):
			moved = append(moved, arg)
		default:
			kept = append(kept, arg)
		}
	}
	return append(append(kept, "--"), moved...)
}

// exactArgs is cobra.ExactArgs with the names of what is expected.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		got := fmt.Sprintf("%d arguments", len(args))
		if len(args) == 1 {
			got = "1 argument"
		}
		return fail(exitUsage, fmt.Errorf("%s takes %s, got %s", cmd.CommandPath(), want, got))
	}
}

// lookup reads an environment variable of this invocation.
func (c *cli) lookup(name string) (string, bool) {
	for i := len(c.env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(c.env[i], name+"="); found {
			return value, true
		}
	}
	return "", false
}
