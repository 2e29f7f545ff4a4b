//go:build unix

package service_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"stockade/biz/service"
)

// Opening a pipe waits for whoever writes into it: a node must not.
func TestAPipeIsNoToggleFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toggles.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := service.CheckToggleFile(path); err == nil {
		t.Error("a pipe was taken for a file")
	}
}
