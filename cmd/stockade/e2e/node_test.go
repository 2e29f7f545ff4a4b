//go:build services

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bounds of a node's life.
const (
	startBound = 30 * time.Second // a loaded machine runs other tests meanwhile
	stopBound  = 15 * time.Second
	logTail    = 60 // lines shown on failure
)

// node is one `stockade serve` process.
type node struct {
	t       *testing.T
	name    string
	log     string // path of its standard error
	public  string // URL of the buyers' listener
	admin   string // URL of the operators' listener
	process *os.Process
	ended   chan struct{} // closed when the process is gone
	waited  error         // how it went, after ended
}

// startNode starts a node and waits until it is ready.
func startNode(t *testing.T, name string, settings ...string) *node {
	t.Helper()
	n := launchNode(t, name, settings...)
	n.awaitReady()
	return n
}

// launchNode starts a node. It stops with the test, at the latest, and then has to stop well.
func launchNode(t *testing.T, name string, settings ...string) *node {
	t.Helper()
	args := []string{"serve", "-c", shop.config, "--set", "nodeName=" + name}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, name: name, log: log.Name(), ended: make(chan struct{})}
	cmd := shop.command(args...)
	cmd.Stdout, cmd.Stderr = log, log
	started := make(chan error)
	go n.run(cmd, started)
	err = <-started
	_ = log.Close() // the process has its own descriptor
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	return n
}

func (n *node) awaitReady() {
	n.t.Helper()
	deadline := time.Now().Add(startBound)
	for !n.isReady() {
		select {
		case <-n.ended:
			n.t.Fatalf("node %s ended at its start: %v", n.name, n.waited)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("node %s is not ready after %v", n.name, startBound)
		}
	}
}

// run owns the process from its start to its end.
func (n *node) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread() // dieWithParent speaks of this thread
	defer runtime.UnlockOSThread()
	dieWithParent(cmd)
	err := cmd.Start()
	n.process = cmd.Process
	started <- err
	if err == nil {
		n.waited = cmd.Wait()
	}
	close(n.ended)
}

// isReady finds the addresses that the node took in its log, then asks it.
func (n *node) isReady() bool {
	if n.public == "" {
		for _, line := range n.lines() {
			var entry struct{ Msg, Public, Admin string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				n.public, n.admin = "http://"+entry.Public, "http://"+entry.Admin
			}
		}
		if n.public == "" {
			return false
		}
	}
	resp, err := http.Get(n.public + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (n *node) alive() bool {
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// kill ends the process as a power cut does.
func (n *node) kill() {
	if err := n.process.Kill(); err != nil {
		n.t.Errorf("node %s: kill: %v", n.name, err)
	}
	<-n.ended
}

// stop asks the process to end and checks that it does: in time, with status 0, without errors in its log.
func (n *node) stop() {
	if n.alive() {
		begun := time.Now()
		_ = n.process.Signal(syscall.SIGTERM)
		select {
		case <-n.ended:
			if n.waited != nil {
				n.t.Errorf("node %s: SIGTERM ended in %v, want status 0", n.name, n.waited)
			}
			n.t.Logf("node %s stopped in %v", n.name, time.Since(begun).Round(time.Millisecond))
		case <-time.After(stopBound):
			n.t.Errorf("node %s still runs %v after SIGTERM", n.name, stopBound)
			n.kill()
		}
	}
	for _, line := range n.lines() {
		if strings.Contains(line, "DATA RACE") || strings.Contains(line, `"level":"ERROR"`) {
			n.t.Errorf("node %s logged: %s", n.name, line)
		}
	}
	if n.t.Failed() {
		lines := n.lines()
		n.t.Logf("end of the log of node %s:\n%s", n.name, strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
	}
}

func (n *node) lines() []string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		n.t.Errorf("log of node %s: %v", n.name, err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// cli runs an operator's command against this node and returns its JSON.
func (n *node) cli(args ...string) []byte {
	n.t.Helper()
	cmd := shop.command(append(args, "-o", "json")...)
	cmd.Env = append(cmd.Env, "STOCKADE_ADMIN_URL="+n.admin, "STOCKADE_PUBLIC_URL="+n.public)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("stockade %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes()
}

// read asks the admin API without the cost of a process, for looks in a loop.
func (n *node) read(path string, into any) error {
	resp, err := http.Get(n.admin + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
