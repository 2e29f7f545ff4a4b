package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"
)

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
	file *watched[[]knownToken]
	now  func() time.Time
}

type knownToken struct {
	sum     [sha256.Size]byte
	who     Operator
	expires time.Time
}

// NewAdminTokens reads the file for the first time, when it has to be there and right.
func NewAdminTokens(path string, now func() time.Time, log *slog.Logger) (*AdminTokens, error) {
	file, err := watch("auth.adminTokensFile", path, maxTokenFile, log, parseKnownTokens)
	if err != nil {
		return nil, err
	}
	return &AdminTokens{file: file, now: now}, nil
}

// Operator finds out whose token this is. ErrTokenUnknown, ErrTokenExpired. A wrong token takes as long as a right one:
// every entry is compared, in constant time.
func (a *AdminTokens) Operator(token string) (Operator, error) {
	if !ValidToken(token) {
		return Operator{}, ErrTokenUnknown
	}
	sum := sha256.Sum256([]byte(token))
	all := a.file.value()
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
func (a *AdminTokens) Run(ctx context.Context) { a.file.run(ctx) }

func parseKnownTokens(text []byte) ([]knownToken, error) {
	entries, err := ParseAdminTokens(text)
	if err != nil {
		return nil, err
	}
	known := make([]knownToken, len(entries))
	for i, e := range entries {
		known[i] = knownToken{who: Operator{Name: e.Name, Role: e.Role}, expires: e.Expires}
		if _, err := hex.Decode(known[i].sum[:], []byte(e.SHA256)); err != nil {
			return nil, err
		}
	}
	return known, nil
}
