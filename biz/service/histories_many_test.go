//go:build services && !race

package service_test

// embeddedHistories is how many histories run on the embedded pair.
const embeddedHistories = 2000

// realHistories is how many run on real servers.
const realHistories = 200
