package main

import "errors"

// Exit statuses, after sysexits.h where it has one.
const (
	exitOK          = 0
	exitRefused     = 1   // understood and refused: wrong state, no such SKU, taken id
	exitUsage       = 64  // the command line is wrong
	exitData        = 65  // a value is not allowed
	exitUnavailable = 69  // the service does not answer, or answers with a fault of its own
	exitTemporary   = 75  // try again
	exitDenied      = 77  // credentials are missing or not enough
	exitConfig      = 78  // the configuration is wrong
	exitInterrupted = 130 // Ctrl-C
)

const exitHelp = `Exit status: 0 done, 1 refused or in disagreement, 64 wrong command line, 65 value not allowed, 69 service not
available, 75 try again, 77 not permitted, 78 wrong configuration, 130 interrupted. check has
its own, for monitors: 0 ready, 1 degraded, 2 not ready, 3 cannot tell; doctor adds 1 warnings, 2 failures.`

// errSilent ends a command whose message is written already.
var errSilent = errors.New("")

// statusError carries the exit status of an error.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// fail attaches an exit status to an error.
func fail(status int, err error) error { return &statusError{status, err} }

// exitCode finds the status of an error. What nobody has given one is trouble of ours: commands mark the mistakes of
// their callers.
func exitCode(err error) int {
	var s *statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return s.status
	}
	return exitUnavailable
}
