//go:build services

package proctest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end the process when the thread that started it ends: a test run that dies leaves no
// node behind. The thread must live as long as the process, see Process.run.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
