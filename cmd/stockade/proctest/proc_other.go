//go:build services && !linux

package proctest

import "os/exec"

// dieWithParent needs a kernel that can do it.
func dieWithParent(*exec.Cmd) {}
