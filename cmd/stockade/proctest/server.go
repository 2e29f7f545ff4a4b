//go:build services

package proctest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Bounds of a server's life.
const (
	serverStartBound = 3 * time.Minute // a machine busy with a sale gives RabbitMQ little
	serverStopBound  = 30 * time.Second
	probeBound       = 2 * time.Second
	portTries        = 200
)

// Server is one database, cache or broker of a test: a process that can be ended, suspended and started again at the
// same address and, unless somebody takes its files away, with what it had written.
type Server struct {
	*Process
	Addr string // host:port
	Dir  string // everything that it writes

	name    string
	command func() *exec.Cmd
	probe   probe
}

// probe is how a server shows that it answers: these bytes come back first when those are sent.
type probe struct {
	send, want string
	skip       int // bytes before those wanted
}

// newServer makes the folder; Start begins.
func newServer(name, dir string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{name: name, Dir: filepath.Join(dir, fmt.Sprintf("%s-%d", name, port)), Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	return s, os.MkdirAll(s.Dir, 0o700)
}

// Start starts the server, again if it ran before, and waits until it answers.
func (s *Server) Start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitAnswer()
}

// Launch starts the server and does not wait.
func (s *Server) Launch() (err error) {
	if s.Answers() {
		return fmt.Errorf("%s: something still answers at %s", s.name, s.Addr)
	}
	s.Process, err = Start(s.name, s.command(), filepath.Join(s.Dir, "log"))
	return err
}

// AwaitAnswer waits until the server answers.
func (s *Server) AwaitAnswer() error { return s.Await(serverStartBound, "answering", s.Answers) }

// StopWell ends the server in its own time; one that is gone stays so.
func (s *Server) StopWell() error {
	if s.Process == nil || !s.Alive() {
		return nil
	}
	_ = s.Resume() // one that is suspended cannot hear
	return s.Stop(serverStopBound)
}

// Answers tells whether the server speaks its protocol.
func (s *Server) Answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, probeBound)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeBound)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, s.probe.send); err != nil {
		return false
	}
	got := make([]byte, s.probe.skip+len(s.probe.want))
	_, err = io.ReadFull(conn, got)
	return err == nil && bytes.HasSuffix(got, []byte(s.probe.want))
}

// FreePort finds a port that nobody listens on, below those that the kernel gives to outgoing connections: a server that
// starts again finds its port free.
func FreePort() (int, error) {
	for range portTries {
		port := 20_000 + rand.IntN(12_000)
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, ln.Close()
		}
	}
	return 0, fmt.Errorf("no free port in %d tries", portTries)
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// program finds a server's program, also where not every user's path leads.
func program(name string) string {
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
