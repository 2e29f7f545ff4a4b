package auth

import (
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"stockade/biz/sale"
)

// MaxToken is the longest JWT that is looked at, in bytes.
const MaxToken = 4 << 10

// Algorithms of buyers' tokens. Each is good for keys of one kind only, and the kind of a key is ours to know.
const (
	algHS256 = "HS256" // jwtSecrets
	algRS256 = "RS256" // RSA keys of jwksFile
	algEdDSA = "EdDSA" // Ed25519 keys of jwksFile
)

// errKey is a key that there is not; the library wraps it.
var errKey = errors.New("no key of this service")

// tokenReader reads the JWTs of buyers.
type tokenReader struct {
	secrets   []jwt.VerificationKey
	published *keyFile // nil: no jwksFile
	parser    *jwt.Parser
}

func newTokenReader(cfg Config, p BuyerParts) (*tokenReader, error) {
	if cfg.Audience == "" { // the library would take tokens for nobody
		return nil, sale.BadInput("auth.audience", "is needed where auth.buyers has jwt")
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{algHS256, algRS256, algEdDSA}),
		jwt.WithStrictDecoding(), // one token has one spelling
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithAudience(cfg.Audience),
		jwt.WithLeeway(time.Duration(cfg.LeewayMs) * time.Millisecond),
		jwt.WithTimeFunc(p.Now),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	r := &tokenReader{parser: jwt.NewParser(options...)}
	for _, secret := range cfg.JWTSecrets {
		r.secrets = append(r.secrets, []byte(secret))
	}
	if cfg.JWKSFile != "" {
		var err error
		if r.published, err = newKeyFile(cfg.JWKSFile, p.Log); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// buyer returns the claim sub of a good token.
func (r *tokenReader) buyer(authorization string) (string, error) {
	scheme, text, _ := strings.Cut(authorization, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", refuse(tokenHeader, "must be Bearer and a JWT")
	case len(text) > MaxToken:
		return "", refuse(tokenHeader, "the token is longer than 4096 bytes")
	case strings.ContainsFunc(text, notInJWT):
		return "", refuse(tokenHeader, "the token is not a JWT")
	}
	var claims jwt.RegisteredClaims
	if _, err := r.parser.ParseWithClaims(text, &claims, r.key); err != nil {
		return "", refuse(tokenHeader, tokenProblem(err))
	}
	if !sale.ValidBuyerID(claims.Subject) {
		return "", refuse(tokenHeader, "the token's claim sub is not a buyer's id")
	}
	return claims.Subject, nil
}

// key finds what a token has to be signed with. The token only says which one of ours it is; what for, the key says.
func (r *tokenReader) key(t *jwt.Token) (any, error) {
	if _, given := t.Header["crit"]; given {
		return nil, errKey // extensions that the reader must know, and we know none
	}
	alg := t.Method.Alg()
	if alg == algHS256 {
		return jwt.VerificationKeySet{Keys: r.secrets}, nil
	}
	if r.published == nil {
		return nil, errKey
	}
	id, _ := t.Header["kid"].(string)
	key := r.published.key(id)
	switch key.(type) {
	case *rsa.PublicKey:
		if alg == algRS256 {
			return key, nil
		}
	case ed25519.PublicKey:
		if alg == algEdDSA {
			return key, nil
		}
	}
	return nil, errKey
}

// tokenProblem says what is wrong with a token. Nothing about its content is told before its signature is good, because
// the library checks that first.
func tokenProblem(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "the token is not a JWT"
	case errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "the token is not signed by a key of this service"
	case errors.Is(err, jwt.ErrTokenExpired):
		return "the token has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return "the token is not valid yet"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return "the token is for another audience"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return "the token is of another issuer"
	}
	return "the token lacks a claim: exp, aud and sub are needed, and iss where the service expects one"
}

// SignToken makes a token that a node with this configuration takes, signed with the first of jwtSecrets: what an issuer
// does for a buyer who has logged in.
func SignToken(cfg Config, buyer string, now time.Time, lifetime time.Duration) (string, error) {
	if len(cfg.JWTSecrets) == 0 {
		return "", sale.BadInput("auth.jwtSecrets", "must have the secret to sign with")
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Issuer: cfg.Issuer, Subject: buyer, Audience: jwt.ClaimStrings{cfg.Audience},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
	}).SignedString([]byte(cfg.JWTSecrets[0]))
}
