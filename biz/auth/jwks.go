package auth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
)

// Bounds of jwksFile.
const (
	keyFileEvery = time.Second // looks at the file
	maxKeyFile   = 256 << 10   // bytes
	maxKeys      = 64
	minRSABits   = 2048
	maxRSABits   = 8192 // what a request may cost
)

// publicKeys are the keys of a JWKS by their id: *rsa.PublicKey and ed25519.PublicKey.
type publicKeys map[string]any

// keyFile holds the public keys of a JWKS file and follows its changes. A version that cannot be used is logged, and the
// keys before it stay.
type keyFile struct {
	path    string
	log     *slog.Logger
	keys    atomic.Pointer[publicKeys]
	seen    []byte // the text that was judged last
	failing string // the error that was logged last
}

func newKeyFile(path string, log *slog.Logger) (*keyFile, error) {
	f := &keyFile{path: path, log: log}
	if _, err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// key returns the key with this id, or nil.
func (f *keyFile) key(id string) any { return (*f.keys.Load())[id] }

func (f *keyFile) run(ctx context.Context) {
	tick := time.NewTicker(keyFileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look(ctx)
		}
	}
}

// look takes over a changed file; what is wrong with it is logged once.
func (f *keyFile) look(ctx context.Context) {
	changed, err := f.load()
	switch {
	case err != nil && err.Error() != f.failing:
		f.failing = err.Error()
		f.log.ErrorContext(ctx, "auth.jwksFile is ignored, the keys before stay", "error", err)
	case err == nil && (changed || f.failing != ""):
		f.failing = ""
		f.log.InfoContext(ctx, "auth.jwksFile read", "file", f.path, "keys", len(*f.keys.Load()))
	}
}

func (f *keyFile) load() (changed bool, err error) {
	text, err := readKeyFile(f.path)
	if err != nil {
		return false, fmt.Errorf("auth.jwksFile: %w", err)
	}
	if f.keys.Load() != nil && bytes.Equal(text, f.seen) {
		return false, nil
	}
	keys, err := parseKeys(text)
	if err != nil {
		return false, fmt.Errorf("auth.jwksFile: %s: %w", f.path, err)
	}
	f.seen = text
	f.keys.Store(&keys)
	return true, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("is larger than %d bytes", maxKeyFile)
	}
	return text, err
}

// parseKeys takes the RSA and Ed25519 keys for signatures out of a JWKS. Keys for anything else are passed over: an issuer
// publishes them too. At least one must be left.
func parseKeys(text []byte) (publicKeys, error) {
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	keys := publicKeys{}
	for i, published := range set.Keys {
		key, err := publicKey(published)
		if err != nil {
			return nil, fmt.Errorf("key %d (%q): %w", i+1, published.KID, err)
		}
		if key == nil {
			continue
		}
		if keys[published.KID] != nil {
			return nil, fmt.Errorf("key %d: the kid %q is there twice", i+1, published.KID)
		}
		keys[published.KID] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("has no RSA key for RS256 and no Ed25519 key for EdDSA")
	}
	return keys, nil
}

// publicKey is the key of one entry, nil for one that is not for the signatures of tokens.
func publicKey(published jwkset.JWKMarshal) (any, error) {
	if published.D != "" || published.K != "" {
		return nil, errors.New("is a secret key, which has no place in this file")
	}
	var wanted jwkset.ALG
	switch {
	case published.KTY == jwkset.KtyRSA:
		wanted = algRS256
	case published.KTY == jwkset.KtyOKP && published.CRV == jwkset.CrvEd25519:
		wanted = algEdDSA
	default:
		return nil, nil
	}
	if published.USE != "" && published.USE != jwkset.UseSig || published.ALG != "" && published.ALG != wanted {
		return nil, nil
	}
	// Certificates add nothing to a key in a file that is trusted as it is.
	published.X5U, published.X5C, published.X5T, published.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(published, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return nil, err
	}
	switch key := parsed.Key().(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("has %d bits, must have from %d to %d", bits, minRSABits, maxRSABits)
		}
		return key, nil
	case ed25519.PublicKey:
		return key, nil
	}
	return nil, errors.New("is not the public key that it says")
}
