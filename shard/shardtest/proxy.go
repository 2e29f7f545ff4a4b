package shardtest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a gate and Redis and can spoil the way back or hold the way there.
type proxy struct {
	t       *testing.T
	target  string
	ln      net.Listener
	scripts atomic.Int64  // EVALSHA and EVAL commands that passed
	waiting atomic.Int64  // requests that hold kept back
	spoil   atomic.Int32  // what happens to replies
	late    time.Duration // of spoilLate
	wg      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	held  chan struct{} // requests wait until it is closed; nil when they pass
}

const (
	spoilNothing = iota
	spoilCut     // close the connection instead of passing a reply on
	spoilLate    // pass replies on after a while
)

func newProxy(t *testing.T, target string) *proxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, ln: ln, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.release()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.ln.Addr().String() }

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// hold keeps requests back until release.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		asked := new(atomic.Bool) // a script went this way, so that its reply is what gets spoilt, not a greeting's
		p.wg.Go(func() { p.forth(client, server, asked) })
		p.wg.Go(func() { p.back(server, client, asked) })
	}
}

func (p *proxy) close(a, b net.Conn) {
	_, _ = a.Close(), b.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, a)
	delete(p.conns, b)
}

func (p *proxy) forth(client, server net.Conn, asked *atomic.Bool) {
	defer p.close(client, server)
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			p.waiting.Add(1)
			<-held
		}
		scripts := bytes.Count(buf[:n], []byte("\r\nevalsha\r\n")) + bytes.Count(buf[:n], []byte("\r\neval\r\n"))
		p.scripts.Add(int64(scripts))
		if scripts > 0 {
			asked.Store(true)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) back(server, client net.Conn, asked *atomic.Bool) {
	defer p.close(client, server)
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		switch {
		case !asked.Load():
		case p.spoil.Load() == spoilCut:
			return
		case p.spoil.Load() == spoilLate:
			time.Sleep(p.late)
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
