//go:build services

package runbook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cmd/stockade/proctest"
)

// Bounds of following a page.
const (
	scriptBound = 40 * time.Second // the commands of one section
	settleBound = 5 * time.Second  // for what commands began to be seen: the index names it
	pollEvery   = 100 * time.Millisecond
)

// awaited are parts of ERROR lines that a node logs because a page is about them.
var awaited = []string{"message dead-lettered", "an event is a dead letter", "unexplained drift", "a message is a dead letter", "malformed"}

func split(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

// start starts the node and waits until it is ready.
func (s *site) start() {
	s.t.Helper()
	s.node = proctest.Launch(s.t, s.program, "shop-1", filepath.Join(s.dir, "serve.yaml"),
		"auth.adminTokensFile="+s.variables["STOCKADE_AUTH_ADMIN_TOKENS_FILE"])
	s.node.Expect(awaited...)
	s.node.AwaitReady()
}

// serve does what a command asks of the site.
func (s *site) serve(request string) {
	s.t.Helper()
	switch request {
	case "start":
		s.start()
	case "stop":
		if err := s.node.Stop(proctest.StopBound); err != nil {
			s.t.Errorf("stop: %v", err)
		}
	default:
		s.t.Errorf("a command asks for %q", request)
	}
	s.requests <- "done"
}

// environment is that of commands: the variables of the pages, and the program in the path.
func (s *site) environment() []string {
	cmd := s.program.Command()
	env := append(cmd.Env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	for name, value := range s.variables {
		env = append(env, name+"="+value)
	}
	return env
}

// bash runs commands until one fails, and returns what they printed.
func (s *site) bash(commands string) (printed string, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), scriptBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-c", commands)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.environment(), s.dir, &out, &out
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	for {
		select {
		case request := <-s.requests:
			s.serve(request)
		case err := <-ended:
			return out.String(), err
		}
	}
}

// cli runs a command of the operator and returns its JSON.
func (s *site) cli(args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(binary, append(args, "-o", "json")...)
	cmd.Env, cmd.Dir = s.environment(), s.dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("stockade %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out
}

// read asks the admin API without the cost of a process.
func (s *site) read(path string, into any) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.variables["STOCKADE_ADMIN_URL"]+path, nil)
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+s.variables["STOCKADE_ADMIN_TOKEN"])
	client := http.Client{Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	s.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s", path, resp.Status)
	}
	s.must(json.NewDecoder(resp.Body).Decode(into))
}

// examine asks the doctor about the demo SKU.
func (s *site) examine() service.Examination {
	s.t.Helper()
	var e service.Examination
	s.read("/admin/v1/doctor?sku="+demo, &e)
	return e
}

// buy makes an order of one unit for a buyer of its own, and names both to the pages.
func (s *site) buy() {
	s.t.Helper()
	s.bought++
	buyer := fmt.Sprintf("buyer-%d", s.bought)
	var order struct {
		ID string `json:"order_id"`
	}
	s.poll("a purchase is accepted", func() bool {
		req, err := http.NewRequest(http.MethodPost, s.variables["STOCKADE_PUBLIC_URL"]+"/v1/skus/"+demo+"/orders", strings.NewReader(`{"quantity":1}`))
		s.must(err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Buyer-Id", buyer)
		req.Header.Set("Idempotency-Key", "k")
		resp, err := http.DefaultClient.Do(req)
		s.must(err)
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusAccepted && json.NewDecoder(resp.Body).Decode(&order) == nil
	})
	s.variables["BUYER"], s.variables["ORDER"] = buyer, order.ID
}

// poll waits for something, at most settleBound.
func (s *site) poll(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(settleBound); !holds(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// astray tells what is not as it was before a page: toggles that are set, a SKU that is not on sale.
func (s *site) astray() string {
	s.t.Helper()
	var toggles struct{ Toggles []service.ToggleState }
	s.read("/admin/v1/toggles", &toggles)
	for _, t := range toggles.Toggles {
		if kind, known := sale.ToggleKindOf(t.Name); !known || t.Value != kind.Default() {
			return fmt.Sprintf("the toggle %s %s is %s", t.Name, t.Scope, t.Value)
		}
	}
	var sku struct{ State string }
	s.read("/admin/v1/skus/"+demo, &sku)
	if sku.State != string(sale.Open) {
		return "the SKU is " + sku.State
	}
	return ""
}
