//go:build services

// Package proctest starts the real processes that tests sell through, breaks them, and ends them: Stockade's nodes and
// the servers behind them.
package proctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is one running program. All methods are for one goroutine at a time, but Alive.
type Process struct {
	name    string
	log     string // path of its output
	process *os.Process
	ended   chan struct{} // closed when the process is gone
	waited  error         // how it went, after ended
}

// Start runs a command with its output going to the end of a file. The process dies with the program that started it.
func Start(name string, cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own descriptor
	p := &Process{name: name, log: log, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// run owns the process from its start to its end.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread() // dieWithParent speaks of this thread
	defer runtime.UnlockOSThread()
	dieWithParent(cmd)
	err := cmd.Start()
	p.process = cmd.Process
	started <- err
	if err == nil {
		p.waited = cmd.Wait()
	}
	close(p.ended)
}

// Alive tells whether the process runs.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// PID is the id of the process.
func (p *Process) PID() int { return p.process.Pid }

// Err is how the process ended: nil for status 0. Only once it has.
func (p *Process) Err() error { return p.waited }

// Kill ends the process as a power cut does. A process that is gone stays so.
func (p *Process) Kill() {
	_ = p.process.Kill() // fails when the process is gone, and then there is nothing to do
	<-p.ended
}

// Signal sends a signal. An error when the process is gone.
func (p *Process) Signal(s os.Signal) error { return p.process.Signal(s) }

// Suspend stops the process where it is, with its connections open, until Resume.
func (p *Process) Suspend() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop asks the process to end, and kills it after bound. It returns how the process ended.
func (p *Process) Stop(bound time.Duration) error {
	if !p.Alive() {
		return p.waited
	}
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.waited
	case <-time.After(bound):
		p.Kill()
		return fmt.Errorf("%s still ran %v after SIGTERM", p.name, bound)
	}
}

// Lines are what the process has written so far.
func (p *Process) Lines() ([]string, error) {
	text, err := os.ReadFile(p.log)
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// Tail is the end of what the process wrote, for a message.
func (p *Process) Tail(lines int) string {
	all, _ := p.Lines()
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Await polls until ok, at most for bound. It gives up at once when the process ends.
func (p *Process) Await(bound time.Duration, what string, ok func() bool) error {
	deadline := time.Now().Add(bound)
	for !ok() {
		if !p.Alive() {
			return fmt.Errorf("%s ended before it was %s: %w\n%s", p.name, what, errors.Join(p.waited), p.Tail(20))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not %s after %v\n%s", p.name, what, bound, p.Tail(20))
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
