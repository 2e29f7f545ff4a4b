package auth

import (
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/MicahParks/jwkset"
)

// Bounds of jwksFile.
const (
	maxKeyFile = 256 << 10 // bytes
	maxKeys    = 64
	minRSABits = 2048
	maxRSABits = 8192 // what a request may cost
)

// publicKeys are the keys of a JWKS by their id: *rsa.PublicKey and ed25519.PublicKey.
type publicKeys map[string]any

// keyFile holds the public keys of a JWKS file and follows its changes.
type keyFile struct{ *watched[publicKeys] }

func newKeyFile(path string, log *slog.Logger) (*keyFile, error) {
	file, err := watch("auth.jwksFile", path, maxKeyFile, log, parseKeys)
	return &keyFile{file}, err
}

// key returns the key with this id, or nil.
func (f *keyFile) key(id string) any { return f.value()[id] }

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
