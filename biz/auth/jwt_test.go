package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var (
	testNow    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	testSecret = strings.Repeat("s", MinSecret)
)

// pair is a signing key with its entry in a JWKS.
type pair struct {
	method  jwt.SigningMethod
	private any
	public  map[string]any
}

func newRSA(kid string) pair {
	key, err := rsa.GenerateKey(rand.Reader, minRSABits)
	if err != nil {
		panic(err)
	}
	return pair{jwt.SigningMethodRS256, key, map[string]any{
		"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256",
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": "AQAB",
	}}
}

func newEd25519(kid string) pair {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return pair{jwt.SigningMethodEdDSA, private, map[string]any{
		"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": base64.RawURLEncoding.EncodeToString(public),
	}}
}

// rsaKeys are slow to make.
var rsaKeys = sync.OnceValue(func() [2]pair { return [2]pair{newRSA("rsa-1"), newRSA("rsa-2")} })

func keySet(t testing.TB, keys ...map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func jwtConfig() Config {
	cfg := DefaultConfig()
	cfg.Buyers = []string{ByJWT}
	cfg.JWTSecrets = []string{testSecret}
	cfg.Audience, cfg.Issuer = "stockade", "shop"
	return cfg
}

func newBuyers(t testing.TB, cfg Config) *Buyers {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b, err := NewBuyers(cfg, BuyerParts{Now: func() time.Time { return testNow }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// claims are those of a good token with changes; nil takes one away.
func claims(changes map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{
		"sub": "u1", "aud": "stockade", "iss": "shop", "iat": testNow.Unix(), "exp": testNow.Add(time.Minute).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func sign(t testing.TB, method jwt.SigningMethod, key any, header, claimed map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims(claimed))
	maps.Copy(token.Header, header)
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hs256(t testing.TB, claimed map[string]any) string {
	return sign(t, jwt.SigningMethodHS256, []byte(testSecret), nil, claimed)
}

// checkRefused holds that a header is refused for a reason that has these words.
func checkRefused(t *testing.T, b *Buyers, authorization, words string) {
	t.Helper()
	buyer, err := b.Bearer(authorization)
	var refusal *Refusal
	if !errors.As(err, &refusal) || buyer != "" || !strings.Contains(refusal.Detail, words) ||
		refusal.Header != "Authorization" || !strings.HasPrefix(refusal.Challenge, "Bearer") {
		t.Errorf("got %q, %#v, want a refusal with %q", buyer, err, words)
	}
}

func checkBuyer(t *testing.T, b *Buyers, token, want string) {
	t.Helper()
	if buyer, err := b.Bearer("Bearer " + token); buyer != want || err != nil {
		t.Errorf("got %q, %v, want %q", buyer, err, want)
	}
}

func TestGoodTokens(t *testing.T) {
	b := newBuyers(t, jwtConfig())
	for name, claimed := range map[string]map[string]any{
		"plain":            nil,
		"several audience": {"aud": []string{"other", "stockade"}},
		"just expired":     {"exp": testNow.Add(-4 * time.Second).Unix()}, // within the leeway of 5 s
		"just too early":   {"nbf": testNow.Add(4 * time.Second).Unix(), "iat": testNow.Add(4 * time.Second).Unix()},
		"without iat":      {"iat": nil},
	} {
		t.Run(name, func(t *testing.T) { checkBuyer(t, b, hs256(t, claimed), "u1") })
	}
	checkBuyer(t, b, hs256(t, map[string]any{"sub": "Жанна d'Arc"}), "Жанна d'Arc")
	if buyer, err := b.Bearer("bearer " + hs256(t, nil)); buyer != "u1" || err != nil {
		t.Errorf("the scheme in lower case: %q, %v", buyer, err)
	}
	signed, err := SignToken(jwtConfig(), "u2", testNow, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	checkBuyer(t, b, signed, "u2")
}

func TestClaimsAreChecked(t *testing.T) {
	b := newBuyers(t, jwtConfig())
	after := func(d time.Duration) int64 { return testNow.Add(d).Unix() }
	for _, tc := range []struct {
		name    string
		claimed map[string]any
		words   string
	}{
		{"expired", map[string]any{"exp": after(-6 * time.Second)}, "has expired"},
		{"never expires", map[string]any{"exp": nil}, "lacks a claim"},
		{"expiry is text", map[string]any{"exp": "soon"}, "not a JWT"},
		{"not before", map[string]any{"nbf": after(6 * time.Second)}, "not valid yet"},
		{"issued in the future", map[string]any{"iat": after(6 * time.Second)}, "not valid yet"},
		{"wrong audience", map[string]any{"aud": "other"}, "another audience"},
		{"audience of a part", map[string]any{"aud": "stock"}, "another audience"},
		{"no audience", map[string]any{"aud": nil}, "lacks a claim"},
		{"empty audience", map[string]any{"aud": ""}, "lacks a claim"},
		{"wrong issuer", map[string]any{"iss": "other"}, "another issuer"},
		{"no issuer", map[string]any{"iss": nil}, "lacks a claim"},
		{"no subject", map[string]any{"sub": nil}, "sub is not a buyer"},
		{"subject is a number", map[string]any{"sub": 7}, "not a JWT"},
		{"long subject", map[string]any{"sub": strings.Repeat("u", 129)}, "sub is not a buyer"},
		{"subject with a line break", map[string]any{"sub": "u1\r\nX-Buyer-Id: u2"}, "sub is not a buyer"},
		{"subject with a NUL", map[string]any{"sub": "u1\x00"}, "sub is not a buyer"},
	} {
		t.Run(tc.name, func(t *testing.T) { checkRefused(t, b, "Bearer "+hs256(t, tc.claimed), tc.words) })
	}
}

// nextLetter differs in a bit that the end of a signature leaves unused.
func nextLetter(last byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(letters[strings.IndexByte(letters, last)^1])
}

func TestForgedAndMalformedTokens(t *testing.T) {
	b := newBuyers(t, jwtConfig())
	good := hs256(t, nil)
	parts := strings.Split(good, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	const unsigned, malformed = "not signed by a key", "not a JWT"
	for _, tc := range []struct{ name, header, words string }{
		{"alg none", "Bearer " + sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil), unsigned},
		{"alg None", "Bearer " + encode(`{"alg":"None"}`) + "." + parts[1] + ".", unsigned},
		{"alg none with the signature", "Bearer " + encode(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2], unsigned},
		{"no alg", "Bearer " + encode(`{}`) + "." + parts[1] + "." + parts[2], unsigned},
		{"alg is a number", "Bearer " + encode(`{"alg":256}`) + "." + parts[1] + "." + parts[2], unsigned},
		{"HS512", "Bearer " + sign(t, jwt.SigningMethodHS512, []byte(testSecret), nil, nil), unsigned},
		{"another secret", "Bearer " + sign(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), nil, nil), unsigned},
		{"an empty secret", "Bearer " + sign(t, jwt.SigningMethodHS256, []byte{}, nil, nil), unsigned},
		{"other claims", "Bearer " + parts[0] + "." + encode(`{"sub":"u2","aud":"stockade","iss":"shop","exp":9999999999}`) + "." + parts[2], unsigned},
		{"critical extension", "Bearer " + sign(t, jwt.SigningMethodHS256, []byte(testSecret), map[string]any{"crit": []string{"x"}}, nil), unsigned},
		{"RS256 without a file", "Bearer " + sign(t, jwt.SigningMethodRS256, rsaKeys()[0].private, nil, nil), unsigned},
		{"no signature", "Bearer " + parts[0] + "." + parts[1] + ".", unsigned},
		{"two parts", "Bearer " + parts[0] + "." + parts[1], malformed},
		{"four parts", "Bearer " + good + ".x", malformed},
		{"padding", "Bearer " + good + "=", malformed},
		{"another spelling of the signature", "Bearer " + good[:len(good)-1] + nextLetter(good[len(good)-1]), malformed},
		{"line break", "Bearer " + parts[0] + ".\n" + parts[1] + "." + parts[2], malformed},
		{"two spaces", "Bearer  " + good, malformed},
		{"claims are a list", "Bearer " + parts[0] + "." + encode(`[]`) + "." + parts[2], malformed},
		{"empty", "Bearer ", malformed},
		{"no token", "Bearer", malformed},
		{"basic", "Basic dTE6c2VjcmV0", "must be Bearer"},
		{"bare", good, "must be Bearer"},
		{"huge", "Bearer " + strings.Repeat("a", MaxToken+1), "longer than 4096 bytes"},
		{"huge and good", "Bearer " + hs256(t, map[string]any{"x": strings.Repeat("a", MaxToken)}), "longer than 4096 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) { checkRefused(t, b, tc.header, tc.words) })
	}
}

// A public key is no secret: whoever knows it must not be able to sign with it.
func TestAPublicKeyIsNotASecret(t *testing.T) {
	key := rsaKeys()[0]
	path := filepath.Join(t.TempDir(), "keys.json")
	write(t, path, keySet(t, key.public))
	der, err := x509.MarshalPKIXPublicKey(&key.private.(*rsa.PrivateKey).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	modulus, err := base64.RawURLEncoding.DecodeString(key.public["n"].(string))
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for _, secrets := range [][]string{nil, {testSecret}} {
		cfg := jwtConfig()
		cfg.JWKSFile, cfg.JWTSecrets = path, secrets
		b := newBuyers(t, cfg)
		header := map[string]any{"kid": "rsa-1"}
		checkBuyer(t, b, sign(t, key.method, key.private, header, nil), "u1")
		for name, secret := range map[string][]byte{
			"PEM": text, "PEM without its last line break": text[:len(text)-1], "DER": der, "modulus": modulus, "file": []byte(keySet(t, key.public)),
		} {
			t.Run(name, func(t *testing.T) {
				checkRefused(t, b, "Bearer "+sign(t, jwt.SigningMethodHS256, secret, header, nil), "not signed by a key")
			})
		}
	}
}

// The secrets overlap while one is rotated.
func TestTwoSecrets(t *testing.T) {
	next := strings.Repeat("n", MinSecret)
	cfg := jwtConfig()
	cfg.JWTSecrets = []string{next, testSecret}
	both := newBuyers(t, cfg)
	checkBuyer(t, both, hs256(t, nil), "u1")
	checkBuyer(t, both, sign(t, jwt.SigningMethodHS256, []byte(next), nil, nil), "u1")
	cfg.JWTSecrets = []string{next}
	checkRefused(t, newBuyers(t, cfg), "Bearer "+hs256(t, nil), "not signed by a key")
}
