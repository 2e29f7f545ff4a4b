//go:build services && race

package service_test

// embeddedHistories is for the race detector, which takes five times as long: races show in few histories, and all the
// others run without it.
const embeddedHistories = 100

const realHistories = 40
