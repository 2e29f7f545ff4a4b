package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// leaves lists the commands that do something, in the order of the help.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

func newRoot() *cobra.Command {
	return (&cli{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).rootCommand()
}

func TestEveryCommandKeepsTheHabits(t *testing.T) {
	all := leaves(newRoot())
	if len(all) < 15 {
		t.Fatalf("only %d commands found", len(all))
	}
	for _, cmd := range all {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q; want a phrase", path, cmd.Short)
		}
		if cmd.RunE == nil || cmd.Run != nil {
			t.Errorf("%s: has no RunE, or a Run beside it", path)
		}
		if cmd.Args == nil {
			t.Errorf("%s: takes any arguments", path)
		}
		if f := cmd.InheritedFlags().Lookup("output"); f == nil || f.Shorthand != "o" {
			t.Errorf("%s: has no -o", path)
		}
		if cmd.Example == "" {
			t.Errorf("%s: has no example", path)
		}
	}
}

// An example that is pasted into a shell finds its command and its flags.
func TestEveryExampleParses(t *testing.T) {
	for _, cmd := range leaves(newRoot()) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "stockade" {
				t.Errorf("%s: example %q does not start with stockade", cmd.CommandPath(), line)
				continue
			}
			root := newRoot()
			args := negativesLast(root, words[1:])
			found, rest, err := root.Find(args)
			if err != nil || found.CommandPath() != cmd.CommandPath() {
				t.Errorf("example %q runs %s (%v)", line, found.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("example %q: %v", line, err)
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("example %q: %v", line, err)
			}
		}
	}
}

// What changes a SKU can be tried without changing it; what only reads has no such flag to wonder about.
func TestWhatChangesHasADryRun(t *testing.T) {
	changing := []string{"create", "load", "open", "pause", "close", "adjust", "slots", "path", "closeout", "cancel", "pay", "replay", "drop", "set", "unset", "revoke"}
	groups := []string{"sku", "order", "dead", "toggle", "token"}
	for _, cmd := range leaves(newRoot()) {
		if !slices.Contains(groups, cmd.Parent().Name()) {
			continue
		}
		has := cmd.Flags().Lookup("dry-run") != nil
		if want := slices.Contains(changing, cmd.Name()); has != want {
			t.Errorf("%s: --dry-run is there: %v, want %v", cmd.CommandPath(), has, want)
		}
	}
}

// Without a service, and with a wrong configuration, nothing is written to standard output, and one line says why.
func TestFailuresWriteToStandardErrorOnly(t *testing.T) {
	env := []string{adminEnv + "=http://127.0.0.1:1", publicEnv + "=http://127.0.0.1:1"}
	offline := []string{
		"stockade version", "stockade errors", "stockade config reference", "stockade check",
		"stockade token create", "stockade token list", "stockade token revoke",
	}
	for _, cmd := range leaves(newRoot()) {
		path := cmd.CommandPath()
		if slices.Contains(offline, path) {
			continue
		}
		args := strings.Fields(path)[1:]
		want := exitUnavailable
		switch {
		case cmd.Flags().Lookup("set") != nil:
			args, want = append(args, "--set", "no.such=1"), exitConfig
		case path == "stockade order show" || path == "stockade order cancel":
			args = append(args, "0198a1b2-0000-7000-8000-000000000000", "--buyer", "u1")
		case path == "stockade order pay":
			args = append(args, "0198a1b2-0000-7000-8000-000000000000", "--secret", testSecret)
		case path == "stockade auditlog", path == "stockade dead list", path == "stockade toggle list", path == "stockade breaker list", path == "stockade node":
		case path == "stockade toggle unset":
			args = append(args, "durability")
		case path == "stockade toggle set":
			args = append(args, "durability", "journal", "--reason", "test")
		case strings.HasPrefix(path, "stockade dead "):
			args = append(args, "7")
		case path == "stockade order list":
			args = append(args, "--buyer", "u1")
		case path == "stockade sku create":
			args = append(args, "demo", "--total", "5")
		case path == "stockade sku adjust":
			args = append(args, "demo", "+5")
		case path == "stockade sku slots":
			args = append(args, "demo", "8")
		case path == "stockade sku path":
			args = append(args, "demo", "mysql")
		case path != "stockade sku list":
			args = append(args, "demo")
		}
		got := runWith(t, env, args...)
		if got.code != want || got.stdout != "" || !strings.HasPrefix(got.stderr, "stockade: ") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got %+v, want status %d and one line on standard error", strings.Join(args, " "), got, want)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	tests := []struct {
		args string
		code int
		says string
	}{
		{"nope", exitUsage, `unknown command "nope"`},
		{"--what", exitUsage, "unknown flag: --what"},
		{"sku --what", exitUsage, "unknown flag: --what"},
		{"sku lod demo", exitUsage, `did you mean "load"?`},
		{"sku lod demo --dry-run", exitUsage, `did you mean "load"?`},
		{"sku load", exitUsage, "takes SKU, got 0 arguments"},
		{"sku load a b", exitUsage, "takes SKU, got 2 arguments"},
		{"sku list x", exitUsage, "takes no arguments, got 1"},
		{"sku list --limit x", exitUsage, "invalid argument"},
		{"sku list --limit -1", exitUsage, "--limit: must be from 1 to"},
		{"sku list --what", exitUsage, "unknown flag: --what"},
		{"sku list -o xml", exitUsage, "must be one of table, json, jsonl, none"},
		{"sku list --admin ftp://x", exitUsage, "--admin: must be a URL such as http://127.0.0.1:8081"},
		{"sku show demo --shares --books", exitUsage, "--shares and --books: choose one"},
		{"sku create demo", exitUsage, "--total is required"},
		{"sku create demo --total 5 --opens-at tomorrow", exitData, "--opens-at: must be a time"},
		{"sku create a{b} --total 5", exitData, "must match [A-Za-z0-9._-]{1,64}"},
		{"sku load a/b", exitData, "must match"},
		{"sku adjust demo 5", exitData, "with its sign"},
		{"sku adjust demo +0", exitData, "with its sign"},
		{"sku adjust demo +1.5", exitData, "with its sign"},
		{"sku adjust demo -99999999999999999999", exitData, "with its sign"},
		{"sku adjust demo", exitUsage, "takes SKU +N|-N"},
		{"order list", exitUsage, "--buyer is required"},
		{"order show x --buyer u", exitData, "must be a UUID"},
		{"order cancel x", exitData, "must be a UUID"},
		{"order pay x --secret s", exitData, "must be a UUID"},
		{"order pay 0198a1b2-0000-7000-8000-000000000000", exitUsage, "--secret or STOCKADE_PAYMENT_SECRET is required"},
		{"order pay 0198a1b2-0000-7000-8000-000000000000 --secret whsec_x", exitData, "--secret: the secret must be whsec_"},
		{"toggle set durability journal", exitUsage, "--reason is required"},
		{"toggle set paths mysql --reason x", exitData, "there is no toggle"},
		{"toggle set durability journal --reason x --sku a/b", exitData, "must match"},
		{"toggle set durability", exitUsage, "takes NAME VALUE, got 1 argument"},
		{"token create ada", exitUsage, "--role is required"},
		{"token create ada --role king", exitData, "role must be viewer, operator or admin"},
		{"token create stockade --role viewer", exitData, "is reserved"},
		{"token create a/b --role viewer", exitData, "must match"},
		{"token create ada --role viewer --for -1h", exitData, "--for: must be"},
		{"token list", exitUsage, "--file or " + tokensFileEnv + " is required"},
		{"token revoke ada", exitUsage, "--file or " + tokensFileEnv + " is required"},
		{"sku list --token stk_short", exitUsage, "--token: must be an admin token"},
		{"dead show x", exitData, "must be the number of a dead letter"},
		{"dead drop 0", exitData, "must be the number of a dead letter"},
		{"dead replay", exitUsage, "takes SEQ, got 0 arguments"},
		{"check --wait soon", checkUnknown, "invalid argument"},
		{"check -o xml", checkUnknown, "must be one of"},
		{"check --public nowhere", checkUnknown, "--public: must be a URL"},
	}
	for _, tt := range tests {
		got := runWith(t, nil, strings.Fields(tt.args)...)
		if got.code != tt.code || !strings.Contains(got.stderr, tt.says) || got.stdout != "" {
			t.Errorf("%s: got %+v, want status %d and %q", tt.args, got, tt.code, tt.says)
		}
	}
}

func TestHelpIsAResult(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"sku"}, {"sku", "adjust", "--help"}} {
		if got := runWith(t, nil, args...); got.code != exitOK || !strings.Contains(got.stdout, "Usage:") || got.stderr != "" {
			t.Errorf("%v: got %+v, want help on standard output", args, got)
		}
	}
}
