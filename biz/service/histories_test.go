//go:build !services

package service_test

// embeddedHistories keeps a run without servers short; with them it is ten times as long.
const embeddedHistories = 200
