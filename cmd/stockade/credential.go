package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stockade/biz/auth"
)

const (
	adminTokenEnv  = "STOCKADE_ADMIN_TOKEN"
	adminTokenFile = ".stockade/admin-token" // of `stockade dev`, from where it was started
	maxTokenText   = 1024                    // bytes of that file

	maxReason = 1024 // bytes
)

// secretFlags are followed by something that stays between the operator and the service.
var secretFlags = []string{"--token", "--secret"}

// withAdminFlags gives every command that has --admin the flags that go with it.
func withAdminFlags(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.PersistentFlags(), cmd.Flags()} {
		if flags.Lookup("admin") != nil && flags.Lookup("token") == nil {
			flags.String("token", "", "token for the admin API, better given by the environment ("+adminTokenEnv+
				"; default: what is in "+adminTokenFile+", for a service on this machine)")
		}
	}
	for _, sub := range cmd.Commands() {
		withAdminFlags(sub)
	}
}

// reasonFlag is for commands that change something.
func reasonFlag(cmd *cobra.Command) {
	cmd.Flags().String("reason", "", "why, for the audit log (default: this command line)")
}

// reason is what the audit log gets to read: --reason, or the command line as it was typed.
func (c *cli) reason(cmd *cobra.Command) string {
	reason, _ := cmd.Flags().GetString("reason")
	reason = oneLine(strings.ToValidUTF8(firstOf(reason, c.typed), "?"))
	for len(reason) > maxReason {
		_, last := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-last]
	}
	return reason
}

// typedLine is a command line without what nobody else may read.
func typedLine(args []string) string {
	words := []string{"stockade"}
	for i, arg := range args {
		for _, flag := range secretFlags {
			if i > 0 && args[i-1] == flag {
				arg = "***"
			} else if strings.HasPrefix(arg, flag+"=") {
				arg = flag + "=***"
			}
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// admin connects a command to the admin API.
func (c *cli) admin(cmd *cobra.Command) (*client, error) {
	given, _ := cmd.Flags().GetString("admin")
	cl, err := c.newClient("admin", given, adminEnv, defaultAdmin)
	if err != nil {
		return nil, err
	}
	cl.reason = c.reason(cmd)
	token, source, err := c.adminToken(cmd, cl.base)
	switch {
	case err != nil:
		return nil, err
	case token == "":
		cl.hint = "give a token by --token, " + adminTokenEnv + " or " + adminTokenFile
	case !auth.ValidToken(token):
		return nil, fail(exitUsage, fmt.Errorf("%s: must be an admin token, %s and 43 characters", source, auth.TokenPrefix))
	default:
		cl.header = append(cl.header, "Authorization", "Bearer "+token)
		cl.hint = "the token is from " + source
	}
	return cl, nil
}

// adminToken finds the operator's token, which is empty when there is none, and tells where it was. What dev left in a
// file is for this machine alone.
func (c *cli) adminToken(cmd *cobra.Command, base string) (token, source string, err error) {
	if token, _ := cmd.Flags().GetString("token"); token != "" {
		return token, "--token", nil
	}
	if value, ok := c.lookup(adminTokenEnv); ok && value != "" {
		return strings.TrimSpace(value), adminTokenEnv, nil
	}
	if !onThisMachine(base) {
		return "", "", nil
	}
	token, err = readToken(adminTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fail(exitConfig, err)
	}
	return token, adminTokenFile, nil
}

// readToken reads a file that holds nothing but a token.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenText))
	return strings.TrimSpace(string(text)), err
}

func onThisMachine(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && ip.IsLoopback())
}
