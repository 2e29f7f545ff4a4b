//go:build unix

package readme_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bounds, wide enough for a machine that runs other tests meanwhile.
const (
	startTimeout  = 90 * time.Second
	stopTimeout   = 20 * time.Second
	answerTimeout = 20 * time.Second
	pollEvery     = 50 * time.Millisecond
)

// process is a running command with all that it starts.
type process struct {
	cmd    *exec.Cmd
	out    output
	ended  chan struct{}
	waited error // after ended
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts a command in a process group of its own, as a terminal does. The test ends it at the latest.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.waited = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when it has ended well
		<-p.ended
	})
	return p
}

// await returns what find makes of the output, as soon as it makes something of it.
func (p *process) await(t *testing.T, find func(string) []string) []string {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(pollEvery) {
		if found := find(p.out.String()); found != nil {
			return found
		}
		select {
		case <-p.ended:
			t.Fatalf("%v ended (%v) and wrote:\n%s", p.cmd.Args, p.waited, p.out.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v is not up and wrote:\n%s", p.cmd.Args, p.out.String())
		}
	}
}

// interrupt does what Ctrl-C does, and wants a good end of it. make tells its own caller about the Ctrl-C.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
		var exit *exec.ExitError
		told := errors.As(p.waited, &exit) && strings.HasSuffix(p.cmd.Path, "make") &&
			exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT
		if (p.waited != nil && !told) || !strings.Contains(p.out.String(), "stopped") {
			t.Errorf("%v after Ctrl-C: %v\n%s", p.cmd.Args, p.waited, p.out.String())
		}
	case <-time.After(stopTimeout):
		t.Fatalf("%v goes on after Ctrl-C:\n%s", p.cmd.Args, p.out.String())
	}
}
