package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stockade/biz/auth"
	"stockade/conf"
	"stockade/mq"
	"stockade/store"
)

// runMigrate brings the schema of the database up to date.
func (c *cli) runMigrate(ctx context.Context, cfg conf.Config) error {
	if err := store.Migrate(ctx, cfg.Store); err != nil {
		return fail(exitUnavailable, err)
	}
	return nil
}

// servable refuses what several nodes cannot share, a file and a broker inside one process, and what nobody but this
// machine may rely on: there is no default for a credential.
func servable(cfg conf.Config) error {
	switch {
	case cfg.Store.Dialect != store.MySQL:
		return fail(exitConfig, fmt.Errorf("store.dialect: serve needs %s; `stockade dev` runs on a file", store.MySQL))
	case cfg.MQ.Driver != mq.DriverRabbit:
		return fail(exitConfig, fmt.Errorf("mq.driver: serve needs %s; `stockade dev` brings a broker along", mq.DriverRabbit))
	case cfg.Auth.AdminTokensFile == "":
		return fail(exitConfig, errors.New("auth.adminTokensFile: serve needs the file of the operators' tokens; "+
			"`stockade token create` makes it"))
	case len(cfg.Auth.PurchaseTokenSecrets) == 0:
		return fail(exitConfig, fmt.Errorf("auth.purchaseTokenSecrets: serve needs a secret of at least %d bytes, the same on "+
			"every node", auth.MinSecret))
	case cfg.Auth.Takes(auth.ByJWT) && len(cfg.Auth.JWTSecrets) == 0 && cfg.Auth.JWKSFile == "":
		return fail(exitConfig, errors.New("auth.jwtSecrets or auth.jwksFile: auth.buyers has jwt, and no key can check one"))
	case cfg.Auth.Takes(auth.ByJWT) && cfg.Auth.Audience == "":
		return fail(exitConfig, errors.New("auth.audience: auth.buyers has jwt, and tokens must be for this service"))
	case cfg.Auth.Takes(auth.BySigned) && len(cfg.Auth.Signers) == 0:
		return fail(exitConfig, errors.New("auth.signers: auth.buyers has signed, and nobody may sign"))
	}
	return nil
}

// runServe runs a node with real servers until ctx ends.
func (c *cli) runServe(ctx context.Context, cfg conf.Config) error {
	log, err := c.logger(cfg)
	if err != nil {
		return err
	}
	listeners, err := takePorts(cfg)
	if err != nil {
		return fail(exitUnavailable, err)
	}
	n, err := newNode(ctx, cfg, log, listeners, c.faults)
	if err != nil {
		return err
	}
	served := n.start()
	log.Info("serving", "public", n.servers.PublicAddr().String(), "admin", n.servers.AdminAddr().String())
	return serveUntil(ctx, served, n.stop, stopTimeout(cfg), log)
}

// stopTimeout bounds a stop in all.
func stopTimeout(cfg conf.Config) time.Duration {
	return time.Duration(cfg.StopTimeoutMs) * time.Millisecond
}

// serveUntil waits for the end of ctx, or of the servers, and stops what ran within the bound.
func serveUntil(
	ctx context.Context, served <-chan error, stop func(context.Context) error, bound time.Duration, log *slog.Logger,
) error {
	var err error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err = <-served:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	err = errors.Join(err, stop(bounded))
	log.Info("stopped")
	return err
}
