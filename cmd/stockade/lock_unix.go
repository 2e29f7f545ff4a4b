//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lockFile locks a file, which it creates if need be, until the result is closed or the process ends, however it ends.
// The file stays: whoever removed it could remove the one that the next process has just locked.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}
