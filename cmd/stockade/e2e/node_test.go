//go:build services

package e2e_test

import (
	"testing"

	"stockade/cmd/stockade/proctest"
)

// startNode starts a node of the shop and waits until it is ready.
func startNode(t *testing.T, name string, settings ...string) *proctest.Node {
	t.Helper()
	n := launchNode(t, name, settings...)
	n.AwaitReady()
	return n
}

func launchNode(t *testing.T, name string, settings ...string) *proctest.Node {
	t.Helper()
	return proctest.Launch(t, shop.program, name, shop.config, settings...)
}
