//go:build services

package proctest

import (
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
)

// NewMariaDB makes a MariaDB server with durable commits and an empty data folder. Its root has no password.
func NewMariaDB(dir string) (*Server, error) {
	s, err := newServer("mariadb", dir)
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.Dir, "data")
	install := exec.Command(program("mariadb-install-db"), "--no-defaults", "--user="+me.Username, "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0")
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	s.probe = probe{skip: 4, want: "\x0a"} // the protocol version of the greeting
	s.command = func() *exec.Cmd {
		// Users are named even when it is root, which the server otherwise refuses to be.
		return exec.Command(program("mariadbd"), "--no-defaults", "--user="+me.Username, "--datadir="+data,
			"--tmpdir="+s.Dir, "--bind-address=127.0.0.1", "--port="+portOf(s.Addr), "--socket=mariadb.sock",
			"--pid-file="+filepath.Join(s.Dir, "pid"), "--skip-name-resolve", "--skip-log-bin",
			"--max-connections=300", "--performance-schema=OFF", "--character-set-server=utf8mb4",
			"--collation-server=utf8mb4_general_ci", "--innodb-flush-log-at-trx-commit=1",
			"--innodb-buffer-pool-size=128M", "--innodb-log-file-size=16M")
	}
	return s, nil
}
