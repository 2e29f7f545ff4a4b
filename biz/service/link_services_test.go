//go:build services

package service_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// link is the way to a server, which a test cuts and mends.
type link struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	cut      bool
	open     map[net.Conn]struct{}
	tasks    sync.WaitGroup
}

func newLink(t testing.TB, server string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: ln, server: server, open: map[net.Conn]struct{}{}}
	l.tasks.Go(l.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		l.set(true)
		l.tasks.Wait()
	})
	return l
}

func (l *link) addr() string { return l.listener.Addr().String() }

// set cuts every connection and refuses new ones, or lets them through again.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for c := range l.open {
			_ = c.Close()
		}
		clear(l.open)
	}
}

func (l *link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.tasks.Go(func() { l.carry(client) })
	}
}

// keep notes a connection, unless the link is cut.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = c.Close()
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *link) carry(client net.Conn) {
	if !l.keep(client) {
		return
	}
	server, err := net.Dial("tcp", l.server)
	if err != nil || !l.keep(server) {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}
