//go:build services

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"stockade/biz/sale"
)

// What the environment says to the test binary.
const (
	asCommandEnv = "STOCKADE_TEST_AS_COMMAND" // 1: be the stockade command
	faultsEnv    = "STOCKADE_TEST_FAULTS"     // path of the socket on which a test arms faults; unset: no faults
)

// TestMain makes the test binary the stockade command itself when the environment says so: real processes, with faults
// that only exist in tests.
func TestMain(m *testing.M) {
	if os.Getenv(asCommandEnv) == "1" {
		os.Exit(asCommand())
	}
	os.Exit(m.Run())
}

func asCommand() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), faults: sale.NoFaults{}}
	serves := len(os.Args) > 1 && os.Args[1] == "serve" // an operator's command has no faults to arm, and the socket is taken
	if path := os.Getenv(faultsEnv); path != "" && serves {
		faults, err := listenForFaults(path, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			return exitUnavailable
		}
		defer faults.close()
		c.faults = faults
	}
	return c.execute(ctx, os.Args[1:])
}
