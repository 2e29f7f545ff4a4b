//go:build services

package proctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// rabbitPrograms holds the programs themselves; those on the path change to another user, who may not reach the files.
const rabbitPrograms = "/usr/lib/rabbitmq/bin"

// rabbitctlBound bounds one administrative command; each starts an Erlang machine of its own.
const rabbitctlBound = 60 * time.Second

// Rabbit is a RabbitMQ server with a port mapper, a cookie and a node name of its own.
type Rabbit struct {
	*Server
	mapper *Process
	env    []string
}

// NewRabbit makes a RabbitMQ server without anything in it.
func NewRabbit(dir string) (*Rabbit, error) {
	s, err := newServer("rabbitmq", dir)
	if err != nil {
		return nil, err
	}
	mapperPort, err := FreePort()
	if err != nil {
		return nil, err
	}
	distPort, err := FreePort()
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	conf := fmt.Sprintf("listeners.tcp.1 = %s\nlog.console = true\nlog.console.level = info\nlog.file = false\n"+
		"disk_free_limit.absolute = 50MB\nraft.wal_max_size_bytes = 67108864\n", s.Addr)
	for name, text := range map[string]string{"rabbitmq.conf": conf, "rabbitmq-env.conf": "", "enabled_plugins": "[].\n"} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	r := &Rabbit{Server: s, env: append(os.Environ(),
		"HOME="+s.Dir, // holds the Erlang cookie
		fmt.Sprintf("ERL_EPMD_PORT=%d", mapperPort), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE="+in("rabbitmq-env.conf"), "RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+in("advanced.config"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		fmt.Sprintf("RABBITMQ_NODENAME=drill%d@localhost", distPort), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+portOf(s.Addr), fmt.Sprintf("RABBITMQ_DIST_PORT=%d", distPort),
		"RABBITMQ_MNESIA_BASE="+in("mnesia"), "RABBITMQ_LOG_BASE="+in("logs"),
		"RABBITMQ_FEATURE_FLAGS_FILE="+in("feature_flags"), "RABBITMQ_PLUGINS_EXPAND_DIR="+in("plugins-expand"),
		"RABBITMQ_PID_FILE="+in("pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
	)}
	s.probe = probe{send: "AMQP\x00\x00\x09\x01", want: "\x01\x00\x00"} // a method on channel 0
	s.command = func() *exec.Cmd {
		cmd := exec.Command(filepath.Join(rabbitPrograms, "rabbitmq-server"))
		// As under systemd, the script becomes the server: else it stays, and a kill would hit the script alone.
		cmd.Env, cmd.Dir = append(r.env, "RUNNING_UNDER_SYSTEMD=1"), s.Dir
		return cmd
	}
	// Erlang would start a port mapper that outlives everybody.
	mapper := exec.Command("epmd", "-port", fmt.Sprint(mapperPort), "-address", "127.0.0.1")
	r.mapper, err = Start("epmd", mapper, in("epmd.log"))
	return r, err
}

// URL is the address for clients.
func (r *Rabbit) URL() string { return RabbitURL(r.Addr) }

// RabbitURL is the address of a RabbitMQ server for clients, at host:port.
func RabbitURL(addr string) string { return "amqp://guest:guest@" + addr + "/" }

// Close ends the server and its port mapper.
func (r *Rabbit) Close() error {
	err := r.StopWell()
	r.mapper.Kill()
	return err
}

// Control runs a rabbitmqctl command.
func (r *Rabbit) Control(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), rabbitctlBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(rabbitPrograms, "rabbitmqctl"), args...)
	cmd.Env, cmd.Dir = r.env, r.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rabbitmqctl %v: %w\n%s", args, errors.Join(err, ctx.Err()), out)
	}
	return nil
}
