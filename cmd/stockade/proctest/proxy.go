//go:build services

package proctest

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is the network between a node and a server of its own. It can be cut, lose or delay what a script answered, hold
// a script back, and swallow what is published.
type Proxy struct {
	target  string
	ln      net.Listener
	Scripts atomic.Int64 // EVALSHA and EVAL commands that were sent
	flows   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool // connections are refused
	deaf  bool // subscribers hear nothing
	spoil Spoil
	hits  int // what spoil has hit
	oneIn int // this part of the replies is lost or late, half each; 0: none
	gate  chan struct{}
	after time.Duration
}

// Spoil is what happens to the next script.
type Spoil int

const (
	nothing   Spoil = iota
	LateReply       // its reply comes too late
	LostReply       // its reply is lost with the connection
	HeldBack        // it reaches the server when release is called
)

// NewProxy starts a proxy to host:port. It ends with the test.
func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, ln: ln, conns: map[net.Conn]bool{}, gate: make(chan struct{}), after: 700 * time.Millisecond}
	p.flows.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.Release()
		p.Cut()
		p.flows.Wait()
	})
	return p
}

// Address is where nodes find the server, host:port.
func (p *Proxy) Address() string { return p.ln.Addr().String() }

// Arm spoils the next script; hit tells when that has happened.
func (p *Proxy) Arm(s Spoil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoil, p.hits = s, 0
}

// Spoil has one in so many replies to scripts lost or late, by chance, from now on; 0 ends it. It returns how many
// faults happened since the last call of it.
func (p *Proxy) Spoil(oneIn int) (hits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hits, p.hits, p.oneIn = p.hits, 0, oneIn
	return hits
}

// Hit tells whether the armed fault has happened.
func (p *Proxy) Hit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits > 0
}

// take tells whether the fault is due, and has it happen once.
func (p *Proxy) take(s Spoil) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	often := p.oneIn > 0 && s != HeldBack && rand.IntN(2*p.oneIn) == 0
	if p.spoil != s && !often {
		return false
	}
	if !often {
		p.spoil = nothing
	}
	p.hits++
	return true
}

// Release lets scripts pass that are held back.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.gate)
	p.gate = make(chan struct{})
}

// Cut closes all connections and refuses new ones until mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Mend lets connections through again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Deafen has subscribers hear nothing any more, while their connections stay up.
func (p *Proxy) Deafen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = true
}

func (p *Proxy) isDeaf() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaf
}

func (p *Proxy) accept() {
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
		down := p.down
		if !down {
			p.conns[client], p.conns[server] = true, true
		}
		p.mu.Unlock()
		if down {
			_, _ = client.Close(), server.Close()
			continue
		}
		flow := &flow{Proxy: p, client: client, server: server}
		p.flows.Go(flow.forth)
		p.flows.Go(flow.back)
	}
}

// flow is one connection through the proxy.
type flow struct {
	*Proxy
	client, server net.Conn
	asked          atomic.Bool // a script went to the server and its reply has not come back
	subscribed     atomic.Bool
}

func (f *flow) close() {
	_, _ = f.client.Close(), f.server.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, f.client)
	delete(f.conns, f.server)
}

func (f *flow) forth() {
	defer f.close()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.client.Read(buf)
		if err != nil {
			return
		}
		scripts := bytes.Count(buf[:n], []byte("\r\nevalsha\r\n")) + bytes.Count(buf[:n], []byte("\r\neval\r\n"))
		f.Scripts.Add(int64(scripts))
		if bytes.Contains(buf[:n], []byte("\r\nsubscribe\r\n")) {
			f.subscribed.Store(true)
		}
		if scripts > 0 {
			f.asked.Store(true)
			if f.take(HeldBack) {
				f.mu.Lock()
				gate := f.gate
				f.mu.Unlock()
				<-gate
			}
		}
		if _, err := f.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (f *flow) back() {
	defer f.close()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.server.Read(buf)
		if err != nil {
			return
		}
		switch {
		case f.subscribed.Load() && f.isDeaf():
			continue
		case !f.asked.Swap(false):
		case f.take(LostReply):
			return
		case f.take(LateReply):
			<-time.After(f.after)
		}
		if _, err := f.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
