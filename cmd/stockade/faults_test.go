//go:build services

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// pauseLength is what the action pause takes.
const pauseLength = time.Second

var errPlanted = errors.New("planted fault")

// armedFaults are the faults of a node under test. A test arms one point at a time over a socket, see
// proctest.FaultRequest; every firing is written down before it happens, because the process may not live to tell.
type armedFaults struct {
	ln    net.Listener
	out   io.Writer
	serve sync.WaitGroup

	mu      sync.Mutex
	armed   proctest.Fault // Count is what is left to fire
	reached map[sale.Point]int
}

func listenForFaults(path string, out io.Writer) (*armedFaults, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	f := &armedFaults{ln: ln, out: out, reached: map[sale.Point]int{}}
	f.serve.Go(f.accept)
	return f, nil
}

func (f *armedFaults) close() {
	_ = f.ln.Close()
	f.serve.Wait()
}

// accept answers one request a connection, one after the other: tests ask seldom.
func (f *armedFaults) accept() {
	for {
		conn, err := f.ln.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(proctest.FaultTimeout))
		var q proctest.FaultRequest
		if json.NewDecoder(conn).Decode(&q) == nil {
			_ = json.NewEncoder(conn).Encode(f.answer(q))
		}
		_ = conn.Close()
	}
}

func (f *armedFaults) answer(q proctest.FaultRequest) proctest.FaultReply {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Arm != nil {
		if !slices.Contains(sale.Points[:], q.Arm.Point) {
			return proctest.FaultReply{Problem: fmt.Sprintf("no point %q", q.Arm.Point)}
		}
		f.armed = *q.Arm
	}
	reply := proctest.FaultReply{Reached: map[sale.Point]int{}, Left: f.armed.Count}
	for p, n := range f.reached {
		reply.Reached[p] = n
	}
	return reply
}

// At does what is armed for the point.
func (f *armedFaults) At(ctx context.Context, p sale.Point) error {
	f.mu.Lock()
	f.reached[p]++
	fires := f.armed.Point == p && f.armed.Count > 0
	action := f.armed.Action
	if fires {
		f.armed.Count--
		fmt.Fprintf(f.out, `{"level":"WARN","msg":%q,"point":%q,"action":%q}`+"\n", proctest.FaultFired, p, action)
	}
	f.mu.Unlock()
	if !fires {
		return nil
	}
	switch action {
	case proctest.FaultKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case proctest.FaultError:
		return errPlanted
	case proctest.FaultPause:
		select {
		case <-time.After(pauseLength):
		case <-ctx.Done():
		}
	}
	return nil
}

func TestArmedFaultsFireAsOftenAsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f, err := listenForFaults(path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if _, err := proctest.AskFaults(path, proctest.FaultRequest{Arm: &proctest.Fault{Point: "nowhere"}}); err == nil {
		t.Error("an unknown point was armed")
	}
	arm := &proctest.Fault{Point: sale.PromiseWritten, Action: proctest.FaultError, Count: 2}
	if _, err := proctest.AskFaults(path, proctest.FaultRequest{Arm: arm}); err != nil {
		t.Fatal(err)
	}
	var fired int
	for range 5 {
		if f.At(t.Context(), sale.PromiseWritten) != nil {
			fired++
		}
		if err := f.At(t.Context(), sale.RelayPacked); err != nil {
			t.Errorf("a point that is not armed: %v", err)
		}
	}
	reply, err := proctest.AskFaults(path, proctest.FaultRequest{})
	if err != nil || fired != 2 || reply.Left != 0 || reply.Reached[sale.PromiseWritten] != 5 {
		t.Errorf("fired %d times, reply %+v, error %v; want 2 of 5", fired, reply, err)
	}
}
