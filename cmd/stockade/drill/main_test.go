//go:build services

// Package drill_test breaks a running sale on purpose: real nodes, real servers of its own, 64 buyers at once. Every drill
// ends with the audit of what buyers were told against what is written.
package drill_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"stockade/cmd/stockade/proctest"
)

// house is what all drills of a run share. Drills run one after the other, and whoever breaks a server mends it.
var house *premises

// premises holds the binary, and the servers that take long to start. Redis is each drill's own.
type premises struct {
	dir     string
	program proctest.Program
	mysql   *proctest.Server
	rabbit  *proctest.Rabbit
	db      *sql.DB // without a database
	worlds  atomic.Int64
}

// long tells whether drills take the time that they want; else about 20 s each.
func long() bool { return os.Getenv("STOCKADE_DRILL") == "long" }

// span is how long a part of a drill lasts.
func span(short, full time.Duration) time.Duration {
	if long() {
		return full
	}
	return short
}

func TestMain(m *testing.M) { os.Exit(runDrills(m)) }

func runDrills(m *testing.M) (code int) {
	house = &premises{}
	defer func() {
		if err := house.close(); err != nil {
			fmt.Fprintln(os.Stderr, "drill: left behind:", err)
			code = 1
		}
	}()
	if err := house.open(); err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		return 1
	}
	return m.Run()
}

// open builds the test binary of the command, which can be the command itself, with the race detector, and starts the
// servers.
func (h *premises) open() (err error) {
	if h.dir, err = os.MkdirTemp("", "drill-"); err != nil {
		return err
	}
	if h.rabbit, err = proctest.NewRabbit(h.dir); err != nil {
		return err
	}
	if err := h.rabbit.Launch(); err != nil { // it takes longest
		return err
	}
	if h.mysql, err = proctest.NewMariaDB(h.dir); err != nil {
		return err
	}
	if err := h.mysql.Start(); err != nil {
		return err
	}
	h.program = proctest.Program{Path: filepath.Join(h.dir, "stockade"), Env: []string{"STOCKADE_TEST_AS_COMMAND=1"}}
	build := exec.Command("go", "test", "-c", "-race", "-tags", "services", "-o", h.program.Path, "stockade/cmd/stockade")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c -race: %w\n%s", err, out)
	}
	if h.db, err = sql.Open("mysql", fmt.Sprintf("root@tcp(%s)/", h.mysql.Addr)); err != nil {
		return err
	}
	h.db.SetConnMaxIdleTime(time.Second) // drills kill the server
	return h.rabbit.AwaitAnswer()
}

func (h *premises) close() error {
	var errs []error
	if h.db != nil {
		errs = append(errs, h.db.Close())
	}
	if h.rabbit != nil {
		errs = append(errs, h.rabbit.Close())
	}
	if h.mysql != nil {
		errs = append(errs, h.mysql.StopWell())
	}
	if h.dir != "" {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}
