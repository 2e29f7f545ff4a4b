package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stockade/biz/sale"
)

// FuzzJWT feeds Authorization headers: whatever is let in is signed, by a second opinion, and names a buyer.
func FuzzJWT(f *testing.F) {
	b := newBuyers(f, jwtConfig())
	good := hs256(f, nil)
	parts := strings.Split(good, ".")
	for _, header := range []string{
		"", "Bearer", "Bearer " + good, "bearer " + good, "Bearer " + good + ".", "Basic dTE6c2VjcmV0",
		"Bearer " + parts[0] + "." + parts[1] + ".", "Bearer eyJhbGciOiJub25lIn0." + parts[1] + ".",
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		buyer, err := b.Bearer(header)
		if err != nil {
			var refusal *Refusal
			if buyer != "" || !errors.As(err, &refusal) || refusal.Detail == "" || refusal.Challenge == "" {
				t.Fatalf("%q, %#v", buyer, err)
			}
			return
		}
		if !sale.ValidBuyerID(buyer) || len(header) > MaxToken+len("Bearer ") {
			t.Fatalf("%q is let in by %d bytes", buyer, len(header))
		}
		_, token, _ := strings.Cut(header, " ")
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			t.Fatalf("%d parts", len(parts))
		}
		h := hmac.New(sha256.New, []byte(testSecret))
		fmt.Fprintf(h, "%s.%s", parts[0], parts[1])
		if base64.RawURLEncoding.EncodeToString(h.Sum(nil)) != parts[2] {
			t.Fatalf("a signature that is none: %q", header)
		}
		var named struct {
			Subject string `json:"sub"`
		}
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(text, &named) != nil || named.Subject != buyer {
			t.Fatalf("%q is let in as %q", named.Subject, buyer)
		}
	})
}

// FuzzSignatureHeader feeds Stockade-Signature headers: one is read in one spelling only, and nothing passes whose MAC is
// not right.
func FuzzSignatureHeader(f *testing.F) {
	cfg := signedConfig()
	header, r := purchase(f, testNow)
	for _, seed := range []string{
		header, "", "key=shop", header + ",", strings.ToUpper(header), strings.Replace(header, "shop", "other", 1),
		"key=shop,t=0,nonce=,v1=", "key=shop,t=9223372036854775808,nonce=" + strings.Repeat("n", 16) + ",v1=" + strings.Repeat("0", 64),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		b := newBuyers(t, cfg)
		s, err := b.ReadSignature(header)
		var refusal *Refusal
		if err != nil {
			if !errors.As(err, &refusal) || refusal.Detail == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if again := fmt.Sprintf("key=%s,t=%d,nonce=%s,v1=%x", s.key, s.unix, s.nonce, s.mac); again != header {
			t.Fatalf("%q is read as %q", header, again)
		}
		want := r.mac(b.signed.secrets[s.key], s.time, s.nonce)
		if err := b.Verify(s, r); (err == nil) != (want == s.mac) {
			t.Fatalf("%q: %v", header, err)
		}
		if err := b.Verify(s, r); !errors.As(err, &refusal) {
			t.Fatalf("%q again: %v", header, err)
		}
	})
}
