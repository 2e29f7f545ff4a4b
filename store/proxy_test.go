//go:build services

package store_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// fault is what a proxy does when it meets the statement it waits for.
type fault uint8

const (
	cutBefore fault = iota + 1 // the server never sees the statement
	cutAfter                   // the server has answered, the client does not hear it
	stall                      // likewise, and the connection stays open
)

// proxy stands between the store and the server and breaks one statement of the next connection that sends it.
type proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	waitFor string // first bytes of the statement; "" breaks nothing
	fault   fault
	open    []net.Conn
	tasks   sync.WaitGroup
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server}
	p.tasks.Go(p.serve)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.tasks.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// breakOn arms the proxy for one statement.
func (p *proxy) breakOn(statement string, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waitFor, p.fault = statement, f
}

// met tells whether the statement it is armed for starts the packet, and disarms the proxy if so.
func (p *proxy) met(payload []byte) fault {
	const comQuery = 0x03
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waitFor == "" || len(payload) == 0 || payload[0] != comQuery || !bytes.HasPrefix(payload[1:], []byte(p.waitFor)) {
		return 0
	}
	p.waitFor = ""
	return p.fault
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, client, server)
		p.mu.Unlock()
		silent := make(chan struct{}) // closed: the client hears nothing any more
		answered := make(chan struct{}, 1)
		p.tasks.Go(func() { toClient(client, server, silent, answered) })
		p.tasks.Go(func() { p.toServer(server, client, silent, answered) })
	}
}

// toClient passes answers on until it is to be silent; then it only tells that one came.
func toClient(client, server net.Conn, silent, answered chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			_ = client.Close()
			return
		}
		select {
		case <-silent:
			select {
			case answered <- struct{}{}:
			default:
			}
		default:
			if _, err := client.Write(buf[:n]); err != nil {
				_ = server.Close()
				return
			}
		}
	}
}

// toServer passes packets on and carries the fault out.
func (p *proxy) toServer(server, client net.Conn, silent, answered chan struct{}) {
	defer func() { _ = server.Close() }()
	for {
		packet, err := readPacket(client)
		if err != nil {
			return
		}
		f := p.met(packet[4:])
		if f == cutBefore {
			_ = client.Close()
			return
		}
		if f != 0 {
			close(silent)
		}
		if _, err := server.Write(packet); err != nil {
			_ = client.Close()
			return
		}
		if f == 0 {
			continue
		}
		<-answered
		if f == cutAfter {
			_ = client.Close()
			return
		}
		_, _ = io.Copy(io.Discard, client) // until the client gives up
		return
	}
}

func readPacket(r io.Reader) ([]byte, error) {
	header := make([]byte, 4)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	size := int(binary.LittleEndian.Uint32(append(header[:3:3], 0)))
	packet := append(header, make([]byte, size)...)
	_, err := io.ReadFull(r, packet[4:])
	return packet, err
}
