//go:build services

package proctest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bounds of a node's life.
const (
	StartBound = 30 * time.Second // a loaded machine runs other tests meanwhile
	StopBound  = 15 * time.Second // what the service promises for SIGTERM
	logTail    = 60               // lines shown on failure
)

// Credentials of every node that Launch starts. Nodes of one installation share them.
const (
	// AdminToken is an admin's, named "proctest".
	AdminToken = "stk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	// PurchaseSecret signs purchase tokens.
	PurchaseSecret = "a secret for tests that everybody may know"

	adminTokensFile = `[{name: proctest, role: admin, sha256: "%x"}]`
	reason          = "a test does it"
)

// Program is a binary that is the stockade command, and the environment that makes it so.
type Program struct {
	Path string
	Env  []string
}

// Command is a run of the program that inherits none of the settings around this test.
func (p Program) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.Path, args...)
	// Programs with the race detector sleep a second at their end otherwise, every command of an operator too.
	cmd.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, p.Env...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STOCKADE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// Node is one `stockade serve` process of a test.
type Node struct {
	*Process
	Name   string
	Public string // URL of the buyers' listener
	Admin  string // URL of the operators' listener

	t       *testing.T
	program Program
	expect  []string // parts of ERROR lines that are no failure
}

// Launch starts a node with a configuration file and settings of its own, key=value. It stops with the test, at the
// latest, and then has to stop well. Settings and the file may name other credentials than those of this package.
func Launch(t *testing.T, program Program, name, config string, settings ...string) *Node {
	t.Helper()
	args := []string{"serve", "-c", config, "--set", "nodeName=" + name}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	dir := t.TempDir()
	tokens := filepath.Join(dir, "admin-tokens.yaml")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, adminTokensFile, sha256.Sum256([]byte(AdminToken))), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := program.Command(args...)
	cmd.Env = append(cmd.Env, "STOCKADE_AUTH_ADMIN_TOKENS_FILE="+tokens, "STOCKADE_AUTH_PURCHASE_TOKEN_SECRETS="+PurchaseSecret)
	p, err := Start("node "+name, cmd, filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Process: p, Name: name, t: t, program: program}
	t.Cleanup(n.StopWell)
	return n
}

// AwaitReady waits until the node serves and says that it is ready.
func (n *Node) AwaitReady() {
	n.t.Helper()
	if err := n.Await(StartBound, "ready", n.isReady); err != nil {
		n.t.Fatal(err)
	}
}

// Serves tells whether the node takes requests by now.
func (n *Node) Serves() bool { return n.Alive() && n.isServing() }

// isServing finds the addresses that the node took in its log.
func (n *Node) isServing() bool {
	if n.Public == "" {
		for _, line := range n.MustLines() {
			var entry struct{ Msg, Public, Admin string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				n.Public, n.Admin = "http://"+entry.Public, "http://"+entry.Admin
			}
		}
	}
	return n.Public != ""
}

func (n *Node) isReady() bool {
	if !n.isServing() {
		return false
	}
	resp, err := http.Get(n.Public + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Expect lists parts of lines that the node may log with level ERROR, because the test makes it.
func (n *Node) Expect(parts ...string) { n.expect = parts }

func (n *Node) expected(line string) bool {
	return slices.ContainsFunc(n.expect, func(part string) bool { return strings.Contains(line, part) })
}

// StopWell asks the process to end and checks that it does: in time, with status 0, without errors in its log.
func (n *Node) StopWell() {
	if n.Alive() {
		begun := time.Now()
		if err := n.Stop(StopBound); err != nil {
			n.t.Errorf("node %s: SIGTERM: %v, want status 0 within %v", n.Name, err, StopBound)
		}
		n.t.Logf("node %s stopped in %v", n.Name, time.Since(begun).Round(time.Millisecond))
	}
	for _, line := range n.MustLines() {
		trouble := strings.Contains(line, `"level":"ERROR"`) && !n.expected(line)
		if trouble || strings.Contains(line, "DATA RACE") || strings.HasPrefix(line, "panic:") {
			n.t.Errorf("node %s logged: %s", n.Name, line)
		}
	}
	if n.t.Failed() {
		n.t.Logf("end of the log of node %s:\n%s", n.Name, n.story())
	}
}

// story is the end of the log without the requests, of which there are too many.
func (n *Node) story() string {
	lines := slices.DeleteFunc(n.MustLines(), func(line string) bool { return strings.Contains(line, `"msg":"request"`) })
	return strings.Join(lines[max(0, len(lines)-logTail):], "\n")
}

// MustLines are the lines of the node's log.
func (n *Node) MustLines() []string {
	lines, err := n.Lines()
	if err != nil {
		n.t.Errorf("log of node %s: %v", n.Name, err)
	}
	return lines
}

// CLI runs an operator's command against this node and returns its JSON.
func (n *Node) CLI(args ...string) []byte {
	n.t.Helper()
	out, err := n.TryCLI(args...)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// TryCLI is CLI for commands that may fail.
func (n *Node) TryCLI(args ...string) ([]byte, error) {
	cmd := n.program.Command(append(args, "-o", "json")...)
	cmd.Env = append(cmd.Env, "STOCKADE_ADMIN_URL="+n.Admin, "STOCKADE_PUBLIC_URL="+n.Public, "STOCKADE_ADMIN_TOKEN="+AdminToken)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("stockade %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes(), nil
}

// Read asks the admin API without the cost of a process, for looks in a loop.
func (n *Node) Read(path string, into any) error {
	client := http.Client{Timeout: 5 * time.Second} // a node may be suspended
	req, err := http.NewRequest(http.MethodGet, n.Admin+path, nil)
	if err != nil {
		return err
	}
	AsAdmin(req)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// AsAdmin makes a request one of an admin, with a reason for the audit log.
func AsAdmin(req *http.Request) {
	req.Header.Set("Authorization", "Bearer "+AdminToken)
	req.Header.Set("X-Reason", reason)
}
