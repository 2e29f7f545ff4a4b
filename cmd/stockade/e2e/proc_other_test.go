//go:build services && !linux

package e2e_test

import "os/exec"

// dieWithParent needs a kernel that can do it.
func dieWithParent(*exec.Cmd) {}
