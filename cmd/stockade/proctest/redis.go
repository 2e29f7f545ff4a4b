//go:build services

package proctest

import (
	"os/exec"
	"path/filepath"
)

// NewRedis makes a Redis server that writes nothing by itself. args go to redis-server.
func NewRedis(dir string, args ...string) (*Server, error) {
	s, err := newServer("redis", dir)
	if err != nil {
		return nil, err
	}
	s.probe = probe{send: "PING\r\n", want: "+PONG"}
	s.command = func() *exec.Cmd {
		return exec.Command(program("redis-server"), append([]string{
			"--port", portOf(s.Addr), "--bind", "127.0.0.1", "--dir", s.Dir,
			"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
		}, args...)...)
	}
	return s, nil
}

// RedisSnapshot is the file that a Redis server reads when it starts and that its SAVE writes.
func (s *Server) RedisSnapshot() string { return filepath.Join(s.Dir, "dump.rdb") }
