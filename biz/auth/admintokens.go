package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// adminTokensEvery is how often the file is looked at: a revoked token is refused within two of these.
const adminTokensEvery = time.Second

// Why a credential of an operator is not accepted.
var (
	ErrTokenUnknown = errors.New("no such admin token")
	ErrTokenExpired = errors.New("the admin token has expired")
)

// Operator is who makes a request of the admin API.
type Operator struct {
	Name string // of the token
	Role Role
}

// AdminTokens knows the operators by the tokens of a file. It needs nothing but that file, so that operators get in while
// Redis and MySQL are down. A version of the file that cannot be used is logged, and the one before it stays.
type AdminTokens struct {
	path    string
	now     func() time.Time
	log     *slog.Logger
	current atomic.Pointer[[]knownToken]
	seen    []byte // the file's text when it was last read; of load's caller
	failing string // the error that was logged last
}

type knownToken struct {
	sum     [sha256.Size]byte
	who     Operator
	expires time.Time
}

// NewAdminTokens reads the file for the first time, when it has to be there and right.
func NewAdminTokens(path string, now func() time.Time, log *slog.Logger) (*AdminTokens, error) {
	a := &AdminTokens{path: path, now: now, log: log}
	if _, err := a.load(); err != nil {
		return nil, err
	}
	return a, nil
}

// Operator finds out whose token this is. ErrTokenUnknown, ErrTokenExpired. A wrong token takes as long as a right one:
// every entry is compared, in constant time.
func (a *AdminTokens) Operator(token string) (Operator, error) {
	if !ValidToken(token) {
		return Operator{}, ErrTokenUnknown
	}
	sum := sha256.Sum256([]byte(token))
	all := *a.current.Load()
	at := -1
	for i := range all {
		same := subtle.ConstantTimeCompare(sum[:], all[i].sum[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	switch {
	case at < 0:
		return Operator{}, ErrTokenUnknown
	case !all[at].expires.IsZero() && !a.now().Before(all[at].expires):
		return Operator{}, ErrTokenExpired
	}
	return all[at].who, nil
}

// Run follows the file until ctx ends.
func (a *AdminTokens) Run(ctx context.Context) {
	tick := time.NewTicker(adminTokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.look(ctx)
		}
	}
}

// look takes over a changed file; what is wrong with it is logged once.
func (a *AdminTokens) look(ctx context.Context) {
	changed, err := a.load()
	switch {
	case err != nil && err.Error() != a.failing:
		a.failing = err.Error()
		a.log.ErrorContext(ctx, "auth.adminTokensFile is ignored, the tokens before stay", "error", err)
	case err == nil && (changed || a.failing != ""):
		a.failing = ""
		a.log.InfoContext(ctx, "auth.adminTokensFile read", "file", a.path, "tokens", len(*a.current.Load()))
	}
}

func (a *AdminTokens) load() (changed bool, err error) {
	text, err := readTokenFile(a.path)
	if err != nil {
		return false, fmt.Errorf("auth.adminTokensFile: %w", err)
	}
	if a.current.Load() != nil && bytes.Equal(text, a.seen) {
		return false, nil
	}
	entries, err := ParseAdminTokens(text)
	if err != nil {
		return false, fmt.Errorf("auth.adminTokensFile: %s: %w", a.path, err)
	}
	known := make([]knownToken, len(entries))
	for i, e := range entries {
		known[i] = knownToken{who: Operator{Name: e.Name, Role: e.Role}, expires: e.Expires}
		if _, err := hex.Decode(known[i].sum[:], []byte(e.SHA256)); err != nil {
			return false, fmt.Errorf("auth.adminTokensFile: %w", err)
		}
	}
	a.seen = text
	a.current.Store(&known)
	return true, nil
}
