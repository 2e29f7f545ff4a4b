package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stockade/biz/auth"
	"stockade/conf"
)

const (
	devOperator   = "dev" // name of the embedded mode's own token
	devTokensFile = "admin-tokens.yaml"
	devTokenFile  = "admin-token"
)

// devSecrets gives the embedded mode the secrets that serve wants to be given. What is configured stays.
func devSecrets(cfg *conf.Config) {
	devBuyers(&cfg.Auth)
	if len(cfg.Router.PaymentSecrets) == 0 {
		cfg.Router.PaymentSecrets = []string{newPaymentSecret()}
	}
	if len(cfg.Auth.PurchaseTokenSecrets) == 0 {
		cfg.Auth.PurchaseTokenSecrets = []string{newSecret()}
	}
}

// devOperators makes a token for whoever can read the folder of the data, and returns its path, which is empty when the
// configuration names other operators.
func devOperators(cfg *conf.Config) (tokenFile string, err error) {
	if cfg.Auth.AdminTokensFile != "" {
		return "", nil
	}
	dir := filepath.Dir(cfg.Store.Path)
	cfg.Auth.AdminTokensFile = filepath.Join(dir, devTokensFile)
	tokenFile = filepath.Join(dir, devTokenFile)
	return tokenFile, keepDevToken(tokenFile, cfg.Auth.AdminTokensFile)
}

// keepDevToken leaves a token of an earlier start as it is, so that what was pasted into a shell goes on working, and
// makes one otherwise.
func keepDevToken(tokenFile, tokensFile string) error {
	all, err := auth.ReadAdminTokens(tokensFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", tokensFile, err)
	}
	old, err := readToken(tokenFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(all, func(t auth.AdminToken) bool { return t.Name == devOperator && t.Matches(old) }) {
		return nil
	}
	token, entry, err := auth.NewAdminToken(devOperator, auth.RoleAdmin, time.Now().UTC().Truncate(time.Second), time.Time{})
	if err != nil {
		return err
	}
	all, _ = auth.Without(all, devOperator)
	if err := auth.WriteAdminTokens(tokensFile, append(all, entry)); err != nil {
		return err
	}
	if err := os.Remove(tokenFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(tokenFile, []byte(token+"\n"), 0o600)
}

// newSecret is random text that nobody can guess.
func newSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return base64.StdEncoding.EncodeToString(key[:])
}

// newPaymentSecret is a secret for payment callbacks of its own, in the form of Standard Webhooks.
func newPaymentSecret() string { return "whsec_" + newSecret() }
