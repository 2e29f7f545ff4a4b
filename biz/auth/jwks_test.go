package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// logText is a log that a test reads while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (p pair) kid() map[string]any { return map[string]any{"kid": p.public["kid"]} }

func TestPublishedKeys(t *testing.T) {
	rsa1, rsa2, ed := rsaKeys()[0], rsaKeys()[1], newEd25519("ed-1")
	path := filepath.Join(t.TempDir(), "keys.json")
	cfg := jwtConfig()
	cfg.JWKSFile = path
	nameless := newEd25519("")
	delete(nameless.public, "kid")
	write(t, path, keySet(t, rsa1.public, ed.public, nameless.public,
		map[string]any{"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AA", "y": "AA"},
		map[string]any{"kty": "RSA", "kid": "enc", "use": "enc", "n": rsa2.public["n"], "e": "AQAB"},
		map[string]any{"kty": "RSA", "kid": "ps", "alg": "PS256", "n": rsa2.public["n"], "e": "AQAB"}))
	b := newBuyers(t, cfg)
	checkBuyer(t, b, sign(t, rsa1.method, rsa1.private, rsa1.kid(), nil), "u1")
	checkBuyer(t, b, sign(t, ed.method, ed.private, ed.kid(), nil), "u1")
	checkBuyer(t, b, sign(t, nameless.method, nameless.private, nil, nil), "u1")
	checkBuyer(t, b, hs256(t, map[string]any{"sub": "u2"}), "u2")

	kid := func(id any) map[string]any { return map[string]any{"kid": id} }
	for name, token := range map[string]string{
		"unknown kid":             sign(t, rsa1.method, rsa1.private, kid("rsa-9"), nil),
		"no kid":                  sign(t, rsa1.method, rsa1.private, nil, nil),
		"kid of another key":      sign(t, rsa2.method, rsa2.private, rsa1.kid(), nil),
		"kid of another kind":     sign(t, rsa1.method, rsa1.private, ed.kid(), nil),
		"and the other way round": sign(t, ed.method, ed.private, rsa1.kid(), nil),
		"kid is a number":         sign(t, rsa1.method, rsa1.private, kid(1), nil),
		"kid is a path":           sign(t, rsa1.method, rsa1.private, kid("../../etc/passwd"), nil),
		"key for encryption":      sign(t, rsa2.method, rsa2.private, kid("enc"), nil),
		"key for PS256":           sign(t, rsa2.method, rsa2.private, kid("ps"), nil),
	} {
		t.Run(name, func(t *testing.T) { checkRefused(t, b, "Bearer "+token, "not signed by a key") })
	}
}

func TestFilesThatAreNoKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	good, private := newEd25519("a"), newEd25519("b")
	private.public["d"] = "c2VjcmV0"
	shortX := newEd25519("c")
	shortX.public["x"] = "AAAA"
	for name, tc := range map[string]struct{ text, words string }{
		"empty":          {"", "JSON"},
		"half":           {keySet(t, good.public)[:20], "JSON"},
		"no keys":        {`{"keys":[]}`, "has no RSA key"},
		"not a set":      {`{}`, "has no RSA key"},
		"only a secret":  {keySet(t, map[string]any{"kty": "oct", "k": "c2VjcmV0"}), "secret key"},
		"a private key":  {keySet(t, good.public, private.public), "secret key"},
		"a short key":    {keySet(t, shortX.public), "32 bytes"},
		"the same kid":   {keySet(t, good.public, good.public), "twice"},
		"too many":       {`{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`, "more than 64"},
		"too large":      {strings.Repeat(" ", maxKeyFile+1), "larger than"},
		"1024 bits":      {keySet(t, map[string]any{"kty": "RSA", "n": base64.RawURLEncoding.EncodeToString(small.N.Bytes()), "e": "AQAB"}), "1024 bits"},
		"RSA without n":  {keySet(t, map[string]any{"kty": "RSA", "e": "AQAB"}), `"n"`},
		"only other use": {keySet(t, map[string]any{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}), "has no RSA key"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.json")
			write(t, path, tc.text)
			cfg := jwtConfig()
			cfg.JWKSFile = path
			_, err := NewBuyers(cfg, BuyerParts{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), "auth.jwksFile: ") || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("got %v, want auth.jwksFile and %q", err, tc.words)
			}
		})
	}
	cfg := jwtConfig()
	cfg.JWKSFile = filepath.Join(t.TempDir(), "none.json")
	if _, err := NewBuyers(cfg, BuyerParts{Now: time.Now, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("no file: %v", err)
	}
}

// Keys are rotated by writing the file, while a node runs. What is wrong with a version does not lock anybody out.
func TestKeysAreRotatedThroughTheFile(t *testing.T) {
	before, after := newEd25519("k1"), newEd25519("k2")
	path := filepath.Join(t.TempDir(), "keys.json")
	write(t, path, keySet(t, before.public))
	cfg := jwtConfig()
	cfg.JWKSFile = path
	var log logText
	b, err := NewBuyers(cfg, BuyerParts{Now: func() time.Time { return testNow }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { b.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()

	old, fresh := sign(t, before.method, before.private, before.kid(), nil), sign(t, after.method, after.private, after.kid(), nil)
	takes := func(token string) bool { _, err := b.Bearer("Bearer " + token); return err == nil }
	if !takes(old) || takes(fresh) {
		t.Fatal("the first key is not the one that counts")
	}
	write(t, path, keySet(t, before.public, after.public))
	eventually(t, "both keys count", func() bool { return takes(old) && takes(fresh) })

	const ignored = "auth.jwksFile is ignored"
	write(t, path, keySet(t, after.public)[:30])
	eventually(t, "a broken file is logged", func() bool { return log.count(ignored) == 1 })
	if !takes(old) || !takes(fresh) {
		t.Error("a broken file took keys away")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a missing file is logged", func() bool { return log.count(ignored) == 2 })
	if !takes(old) || !takes(fresh) {
		t.Error("a missing file took keys away")
	}
	write(t, path, keySet(t, after.public))
	eventually(t, "the old key is gone", func() bool { return !takes(old) })
	if !takes(fresh) || log.count(ignored) != 2 {
		t.Errorf("the new key counts: %v; logged %d times", takes(fresh), log.count(ignored))
	}
}
