package main

import "errors"

// errLocked says that another process holds the lock on a file.
var errLocked = errors.New("locked")
