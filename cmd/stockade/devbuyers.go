package main

import (
	"fmt"
	"slices"
	"time"

	"stockade/biz/auth"
)

const (
	devAudience = "stockade"     // of tokens for the embedded mode
	devBearer   = 24 * time.Hour // lifetime of the token that it prints
)

// devBuyers lets the embedded mode take buyers' tokens too, signed with a secret of its own. What is configured stays.
func devBuyers(cfg *auth.Config) {
	if slices.Equal(cfg.Buyers, auth.DefaultConfig().Buyers) {
		cfg.Buyers = append(slices.Clone(cfg.Buyers), auth.ByJWT)
	}
	if len(cfg.JWTSecrets) == 0 && cfg.JWKSFile == "" {
		cfg.JWTSecrets = []string{newSecret()}
	}
	if cfg.Audience == "" {
		cfg.Audience = devAudience
	}
}

// asBuyer is a command that looks at a buyer's orders with a token, as an app does. It is empty where this node could not
// have made the token, or takes nothing else anyway.
func (e *embedded) asBuyer(buyer string, now time.Time) (string, error) {
	cfg := e.cfg.Auth
	if !cfg.Takes(auth.ByHeader) || !cfg.Takes(auth.ByJWT) || len(cfg.JWTSecrets) == 0 {
		return "", nil
	}
	token, err := auth.SignToken(cfg, buyer, now, devBearer)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("curl -sS http://%s/v1/orders -H 'Authorization: Bearer %s'", e.servers.PublicAddr(), token), nil
}
