package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/auth"
)

// tokensFileEnv names the file of admin tokens, for serve as for the commands that change it.
const tokensFileEnv = "STOCKADE_AUTH_ADMIN_TOKENS_FILE"

const maxTokenFor = 10 * 365 * 24 * time.Hour

// tokenView is an admin token as commands print it.
type tokenView struct {
	Token string `json:"token,omitempty"` // of create alone, and just once
	auth.AdminToken
	File  string `json:"file,omitempty"`
	Entry string `json:"entry,omitempty"` // YAML for a file that somebody else writes
}

func (c *cli) tokenCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of operators",
		Long: "Operators show a token to the admin API. Nodes know them by a file of hashes, auth.adminTokensFile, which they look\n" +
			"at once a second; it can be the same file on every node. The token itself is printed once.\n\n" +
			"  viewer    looks at everything\n" +
			"  operator  also opens, pauses and closes sales, sets toggles, reshares, reconciles, cancels, handles dead letters\n" +
			"  admin     also creates, loads and adjusts SKUs, changes their slots and path, and closes them out",
	}
	group.PersistentFlags().String("file", "", "the file of admin tokens (environment: "+tokensFileEnv+")")
	group.AddCommand(c.tokenCreateCommand(), c.tokenListCommand(), c.tokenRevokeCommand())
	return group
}

func (c *cli) tokenCreateCommand() *cobra.Command {
	var role string
	var span time.Duration
	var dry bool
	cmd := &cobra.Command{
		Use:   "create NAME --role viewer|operator|admin",
		Short: "Make a token and add it to the file",
		Long: "Prints the token, once, and adds its hash to the file; without a file it prints the entry that belongs there. The\n" +
			"name is the actor in the audit log.",
		Example: "  stockade token create ada --role admin --file admin-tokens.yaml\n" +
			"  stockade token create shift-7 --role operator --for 12h --file admin-tokens.yaml\n" +
			"  stockade token create grafana --role viewer",
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case role == "":
				return fail(exitUsage, errors.New("--role is required: viewer, operator or admin"))
			case span < 0 || span > maxTokenFor:
				return fail(exitData, fmt.Errorf("--for: must be from 1s to %v", maxTokenFor))
			}
			now := time.Now().UTC().Truncate(time.Second)
			var expires time.Time
			if span > 0 {
				expires = now.Add(span)
			}
			token, entry, err := auth.NewAdminToken(args[0], auth.Role(role), now, expires)
			if err != nil {
				return fail(exitData, err)
			}
			view := tokenView{Token: token, AdminToken: entry, File: c.tokensFile(cmd)}
			switch {
			case dry:
				view.Token = ""
			case view.File == "":
				text, err := auth.FormatAdminTokens([]auth.AdminToken{entry})
				if err != nil {
					return err
				}
				view.Entry = string(text)
			default:
				if err := changeTokens(view.File, func(all []auth.AdminToken) ([]auth.AdminToken, error) {
					if _, there := auth.Without(all, entry.Name); there {
						return nil, fail(exitRefused, fmt.Errorf("%s has a token %q; revoke it first, or choose another name", view.File, entry.Name))
					}
					return append(all, entry), nil
				}); err != nil {
					return err
				}
			}
			return c.printToken(view)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, operator or admin (required)")
	cmd.Flags().DurationVar(&span, "for", 0, "expire after this time, such as 720h (default: never)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the entry that would be added, and change nothing")
	return cmd
}

func (c *cli) printToken(v tokenView) error {
	var pairs [][2]string
	if v.Token != "" {
		pairs = append(pairs, [2]string{"token", v.Token})
	} else {
		pairs = append(pairs, [2]string{"dry run", "nothing is changed"})
	}
	pairs = append(pairs, [2]string{"name", v.Name}, [2]string{"role", string(v.Role)}, [2]string{"expires", moment(&v.Expires)},
		[2]string{"file", firstOf(v.File, "-")})
	if err := c.fields(v, pairs...); err != nil || v.Entry == "" || c.format != "table" {
		return err
	}
	_, err := io.WriteString(c.stdout, "\nAdd this to auth.adminTokensFile:\n\n"+v.Entry)
	return err
}

func (c *cli) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens of the file, without the tokens themselves",
		Example: "  stockade token list --file admin-tokens.yaml\n  stockade token list --file admin-tokens.yaml -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := c.needTokensFile(cmd)
			if err != nil {
				return err
			}
			all, err := auth.ReadAdminTokens(file)
			if err != nil {
				return fail(exitConfig, fmt.Errorf("%s: %w", file, err))
			}
			r := result{header: []string{"NAME", "ROLE", "CREATED", "EXPIRES"}}
			for _, t := range all {
				r.add(t, t.Name, string(t.Role), moment(&t.Created), moment(&t.Expires))
			}
			return c.print(r)
		},
	}
}

func (c *cli) tokenRevokeCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Take a token out of the file; nodes refuse it within two seconds",
		Example: "  stockade token revoke ada --file admin-tokens.yaml\n  stockade token revoke ada --file admin-tokens.yaml --dry-run",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.needTokensFile(cmd)
			if err != nil {
				return err
			}
			change := func(all []auth.AdminToken) ([]auth.AdminToken, error) {
				rest, found := auth.Without(all, args[0])
				if !found {
					return nil, fail(exitRefused, fmt.Errorf("%s has no token %q", file, args[0]))
				}
				return rest, nil
			}
			what := [2]string{"revoked", args[0]}
			if dry {
				all, err := auth.ReadAdminTokens(file)
				if err == nil {
					_, err = change(all)
				}
				if err != nil {
					return err
				}
				what[0] = "would revoke"
			} else if err := changeTokens(file, change); err != nil {
				return err
			}
			return c.fields(map[string]string{strings.ReplaceAll(what[0], " ", "_"): what[1], "file": file}, what, [2]string{"file", file})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say whether the token is there, and change nothing")
	return cmd
}

func (c *cli) tokensFile(cmd *cobra.Command) string {
	file, _ := cmd.Flags().GetString("file")
	if value, ok := c.lookup(tokensFileEnv); file == "" && ok {
		file = value
	}
	return file
}

func (c *cli) needTokensFile(cmd *cobra.Command) (string, error) {
	file := c.tokensFile(cmd)
	if file == "" {
		return "", fail(exitUsage, errors.New("--file or "+tokensFileEnv+" is required"))
	}
	return file, nil
}

// changeTokens rewrites a file of admin tokens, which need not be there. One command at a time does, so that none undoes
// what another one did.
func changeTokens(file string, change func([]auth.AdminToken) ([]auth.AdminToken, error)) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fail(exitConfig, err)
	}
	lock, err := lockFile(file + ".lock")
	switch {
	case errors.Is(err, errLocked):
		return fail(exitTemporary, fmt.Errorf("%s is being changed by another command; try again", file))
	case err != nil:
		return fail(exitConfig, err)
	}
	defer lock.Close()
	all, err := auth.ReadAdminTokens(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(exitConfig, fmt.Errorf("%s: %w", file, err))
	}
	if all, err = change(all); err != nil {
		return err
	}
	if err := auth.WriteAdminTokens(file, all); err != nil {
		return fail(exitConfig, fmt.Errorf("%s: %w", file, err))
	}
	return nil
}
