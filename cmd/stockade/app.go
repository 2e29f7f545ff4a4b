package main

import (
	"context"
	"errors"

	"stockade/conf"
)

var errNotWired = errors.New("this build has no service in it")

// runDev runs the embedded mode until ctx ends.
func (c *cli) runDev(context.Context, conf.Config) error { return fail(exitUnavailable, errNotWired) }

// runServe runs a node with real servers until ctx ends.
func (c *cli) runServe(context.Context, conf.Config) error { return fail(exitUnavailable, errNotWired) }

// runMigrate brings the schema of the database up to date.
func (c *cli) runMigrate(context.Context, conf.Config) error {
	return fail(exitUnavailable, errNotWired)
}
