package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"stockade/biz/sale"
)

const (
	newSecret = "a new secret of 32 bytes or more, really"
	oldSecret = "an old secret of 32 bytes or more, really"
)

var tokenDay = time.Date(2026, 11, 27, 9, 0, 0, 400e6, time.UTC)

func tokensAt(now time.Time, secrets ...string) *PurchaseTokens {
	return NewPurchaseTokens(secrets, 2*time.Minute, func() time.Time { return now })
}

func issued(t testing.TB, p *PurchaseTokens, sku, buyer string) (string, PurchaseToken) {
	t.Helper()
	text, token, err := p.Issue(sku, buyer)
	if err != nil {
		t.Fatal(err)
	}
	return text, token
}

// Each token is another order's, good for its own buyer and SKU, for the lifetime and less than a second more.
func TestAPurchaseTokenIsForOneOrder(t *testing.T) {
	p := tokensAt(tokenDay, newSecret)
	longest := strings.Repeat("<", sale.MaxBuyerID)
	seen := map[sale.OrderID]bool{}
	for _, who := range []struct{ sku, buyer string }{
		{"demo", "u1"}, {"demo", "u1"}, {"demo", "ümlaut & <so>"}, {strings.Repeat("s", sale.MaxSKUID), longest},
	} {
		text, token := issued(t, p, who.sku, who.buyer)
		if seen[token.Order] || token.Order[6]>>4 != 7 {
			t.Errorf("%s has the order %s", who.buyer, token.Order)
		}
		seen[token.Order] = true
		if life := token.ExpiresAt.Sub(tokenDay); life < 2*time.Minute || life >= 2*time.Minute+time.Second {
			t.Errorf("a token lives for %v", life)
		}
		got, err := p.Check(text, who.sku, who.buyer)
		if err != nil || got != token {
			t.Errorf("%s of %s: %+v, %v; want %+v", who.sku, who.buyer, got, err, token)
		}
		for _, other := range []struct{ sku, buyer string }{
			{who.sku, who.buyer + "x"}, {who.sku, "u2"}, {"other", who.buyer}, {who.sku + "x", who.buyer}, {"", who.buyer}, {who.sku, ""},
		} {
			if _, err := p.Check(text, other.sku, other.buyer); !errors.Is(err, ErrPurchaseTokenRefused) {
				t.Errorf("a token of %+v serves %+v: %v", who, other, err)
			}
		}
	}
}

// The last moment of a token is the one before ExpiresAt; afterwards it is read, and says that it is too old.
func TestAPurchaseTokenExpires(t *testing.T) {
	text, token := issued(t, tokensAt(tokenDay, newSecret), "demo", "u1")
	for _, tt := range []struct {
		at      time.Time
		expired bool
	}{
		{tokenDay.Add(-30 * time.Second), false}, // another node's clock is behind
		{token.ExpiresAt.Add(-time.Nanosecond), false},
		{token.ExpiresAt, true},
		{token.ExpiresAt.Add(365 * 24 * time.Hour), true},
	} {
		got, err := tokensAt(tt.at, newSecret).Check(text, "demo", "u1")
		if err != nil || got.Expired != tt.expired || got.Order != token.Order {
			t.Errorf("at %v: %+v, %v; want expired %v", tt.at, got, err, tt.expired)
		}
	}
	if _, err := tokensAt(tokenDay.Add(-time.Hour), newSecret).Check(text, "demo", "u1"); !errors.Is(err, ErrPurchaseTokenRefused) {
		t.Errorf("a token of the future: %v", err)
	}
}

// A node that has the new secret takes tokens of those that still sign with the old one, not the other way round.
func TestPurchaseTokenSecretsRotate(t *testing.T) {
	both := tokensAt(tokenDay, newSecret, oldSecret)
	ofOld, token := issued(t, tokensAt(tokenDay, oldSecret), "demo", "u1")
	if got, err := both.Check(ofOld, "demo", "u1"); err != nil || got != token {
		t.Errorf("signed with the old secret: %+v, %v", got, err)
	}
	ofNew, _ := issued(t, both, "demo", "u1")
	if _, err := tokensAt(tokenDay, newSecret).Check(ofNew, "demo", "u1"); err != nil {
		t.Errorf("signed by a node that has both: %v", err)
	}
	for _, secrets := range [][]string{{newSecret}, {}} {
		if _, err := tokensAt(tokenDay, secrets...).Check(ofOld, "demo", "u1"); !errors.Is(err, ErrPurchaseTokenRefused) {
			t.Errorf("with %d other secrets: %v", len(secrets), err)
		}
	}
	var none *PurchaseTokens
	if none.Enabled() || tokensAt(tokenDay).Enabled() || !both.Enabled() {
		t.Error("Enabled does not tell whether there is a secret")
	}
}

// What is signed by a key of ours in another way, or says other things, is refused.
func TestForgedPurchaseTokens(t *testing.T) {
	p := tokensAt(tokenDay, newSecret)
	good := func() jwt.RegisteredClaims {
		return jwt.RegisteredClaims{
			ID: "0198c0de-0000-7000-8000-000000000001", Subject: "u1", Audience: jwt.ClaimStrings{"stockade:purchase:demo"},
			IssuedAt: jwt.NewNumericDate(tokenDay), ExpiresAt: jwt.NewNumericDate(tokenDay.Add(time.Minute)),
		}
	}
	sign := func(method jwt.SigningMethod, key any, change func(*jwt.RegisteredClaims)) string {
		t.Helper()
		claims := good()
		if change != nil {
			change(&claims)
		}
		text, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	hs256 := func(change func(*jwt.RegisteredClaims)) string {
		return sign(jwt.SigningMethodHS256, []byte(newSecret), change)
	}
	if _, err := p.Check(hs256(nil), "demo", "u1"); err != nil {
		t.Fatalf("the claims that the others are made of: %v", err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := hs256(nil)
	head, rest, _ := strings.Cut(text, ".")
	body, mac, _ := strings.Cut(rest, ".")
	otherBody := strings.Split(hs256(func(c *jwt.RegisteredClaims) { c.Subject = "u2" }), ".")[1]
	for name, forged := range map[string]string{
		"empty":              "",
		"dots":               "..",
		"not a token":        strings.Repeat("a", 200),
		"huge":               head + "." + strings.Repeat("A", MaxPurchaseToken) + "." + mac,
		"alg none":           sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"no signature":       head + "." + body + ".",
		"HS512":              sign(jwt.SigningMethodHS512, []byte(newSecret), nil),
		"ES256":              sign(jwt.SigningMethodES256, curve, nil),
		"another secret":     sign(jwt.SigningMethodHS256, []byte(oldSecret), nil),
		"another body":       head + "." + otherBody + "." + mac,
		"line break":         text[:len(text)-3] + "\n" + text[len(text)-3:],
		"padding":            text + "=",
		"four parts":         text + ".",
		"no order":           hs256(func(c *jwt.RegisteredClaims) { c.ID = "" }),
		"order of zeroes":    hs256(func(c *jwt.RegisteredClaims) { c.ID = sale.OrderID{}.String() }),
		"no UUID":            hs256(func(c *jwt.RegisteredClaims) { c.ID = "order" }),
		"no expiry":          hs256(func(c *jwt.RegisteredClaims) { c.ExpiresAt = nil }),
		"no time":            hs256(func(c *jwt.RegisteredClaims) { c.IssuedAt = nil }),
		"no audience":        hs256(func(c *jwt.RegisteredClaims) { c.Audience = nil }),
		"two audiences":      hs256(func(c *jwt.RegisteredClaims) { c.Audience = append(c.Audience, "stockade:purchase:x") }),
		"for something else": hs256(func(c *jwt.RegisteredClaims) { c.Audience[0] = "demo" }),
	} {
		if got, err := p.Check(forged, "demo", "u1"); !errors.Is(err, ErrPurchaseTokenRefused) || got != (PurchaseToken{}) {
			t.Errorf("%s: %+v, %v; want it refused", name, got, err)
		}
	}
}

// FuzzPurchaseToken holds that no text but the one that was issued passes, whatever it is, and that it passes only for
// whom it was issued.
func FuzzPurchaseToken(f *testing.F) {
	p := tokensAt(tokenDay, newSecret, oldSecret)
	claims := jwt.RegisteredClaims{
		ID: "0198c0de-0000-7000-8000-000000000001", Subject: "u1", Audience: jwt.ClaimStrings{"stockade:purchase:demo"},
		IssuedAt: jwt.NewNumericDate(tokenDay), ExpiresAt: jwt.NewNumericDate(tokenDay.Add(time.Minute)),
	}
	good, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(newSecret))
	if err != nil {
		f.Fatal(err)
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "demo", "u1")
	f.Add(good, "demo", "u2")
	f.Add(good[:len(good)-1]+"A", "demo", "u1")
	f.Add(none, "demo", "u1")
	f.Add("eyJhbGciOiJIUzI1NiJ9.bnVsbA.AA", "demo", "u1")
	f.Fuzz(func(t *testing.T, text, sku, buyer string) {
		token, err := p.Check(text, sku, buyer)
		switch {
		case err == nil && (text != good || sku != "demo" || buyer != "u1"):
			t.Fatalf("%q passes for %q of %q", text, sku, buyer)
		case err == nil && token.Order.String() != claims.ID:
			t.Fatalf("order %s, want %s", token.Order, claims.ID)
		case err != nil && !errors.Is(err, ErrPurchaseTokenRefused):
			t.Fatalf("%q: %v", text, err)
		case err != nil && text == good && sku == "demo" && buyer == "u1":
			t.Fatal("the good token is refused")
		}
	})
}
