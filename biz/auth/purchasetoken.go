package auth

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"stockade/biz/sale"
)

// MaxPurchaseToken is the longest purchase token that is looked at, in bytes: one with the longest SKU and a buyer of
// characters that JSON writes in six bytes each fits.
const MaxPurchaseToken = 2048

const (
	purchaseAudience = "stockade:purchase:" // followed by the SKU
	purchaseSkew     = time.Minute          // by which the clock of the node that issued a token may be ahead
)

// ErrPurchaseTokenRefused refuses a purchase token that is malformed, forged, or for another buyer or SKU. It does not say
// which: only somebody who is trying things out would want to know.
var ErrPurchaseTokenRefused = errors.New("the purchase token is not one for this buyer and SKU")

// PurchaseTokens issues and checks purchase tokens: JWTs, signed with HMAC-SHA256, that let one buyer make one order of one
// SKU for a short time. Nodes that share their secrets accept each other's tokens. A nil one knows no secret.
type PurchaseTokens struct {
	keys     [][]byte // the first one signs
	header   string   // of every token
	lifetime time.Duration
	now      func() time.Time
	parser   *jwt.Parser
}

// PurchaseToken is what a token says of the order that may come of it.
type PurchaseToken struct {
	Order     sale.OrderID
	ExpiresAt time.Time
	Expired   bool // by this node's clock
}

// NewPurchaseTokens takes the secrets, newest first: the first one signs, the others are being rotated out. A token is good
// for at least lifetime, and for less than a second more.
func NewPurchaseTokens(secrets []string, lifetime time.Duration, now func() time.Time) *PurchaseTokens {
	example, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{}).SigningString() // these can be written
	header, _, _ := strings.Cut(example, ".")
	p := &PurchaseTokens{
		header: header, lifetime: lifetime, now: now,
		parser: jwt.NewParser(jwt.WithStrictDecoding()), // one token has one spelling
	}
	for _, secret := range secrets {
		p.keys = append(p.keys, []byte(secret))
	}
	return p
}

// Enabled tells whether there is a secret to sign with.
func (p *PurchaseTokens) Enabled() bool { return p != nil && len(p.keys) > 0 }

// Issue makes a token for a buyer and a SKU, with a new order id. It must be Enabled.
func (p *PurchaseTokens) Issue(sku, buyer string) (text string, token PurchaseToken, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", token, err
	}
	now := p.now()
	token.Order = sale.OrderID(id)
	// JWTs know whole seconds.
	token.ExpiresAt = now.Add(p.lifetime + time.Second - 1).Truncate(time.Second).UTC()
	text, err = jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		ID: token.Order.String(), Subject: buyer, Audience: jwt.ClaimStrings{purchaseAudience + sku},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(token.ExpiresAt),
	}).SignedString(p.keys[0])
	return text, token, err
}

// Check reads a token that this buyer sent for this SKU. ErrPurchaseTokenRefused; an expired one is not an error.
func (p *PurchaseTokens) Check(text, sku, buyer string) (PurchaseToken, error) {
	if !p.Enabled() || len(text) > MaxPurchaseToken || strings.ContainsFunc(text, notInJWT) {
		return PurchaseToken{}, ErrPurchaseTokenRefused
	}
	claims, ok := p.signed(text)
	if !ok || claims.ExpiresAt == nil || claims.IssuedAt == nil {
		return PurchaseToken{}, ErrPurchaseTokenRefused
	}
	forSKU := len(claims.Audience) == 1 && claims.Audience[0] == purchaseAudience+sku
	now := p.now()
	if !forSKU || claims.Subject != buyer || claims.IssuedAt.After(now.Add(purchaseSkew)) {
		return PurchaseToken{}, ErrPurchaseTokenRefused
	}
	id, err := sale.ParseOrderID(claims.ID)
	if err != nil || id == (sale.OrderID{}) {
		return PurchaseToken{}, ErrPurchaseTokenRefused
	}
	expires := claims.ExpiresAt.UTC()
	return PurchaseToken{Order: id, ExpiresAt: expires, Expired: !now.Before(expires)}, nil
}

// signed returns the claims of a token that a secret of ours signed. The header has to be the one that we write, so that
// nobody chooses an algorithm, and the signature is checked before anything is read: the library's parser, which reads
// first, takes three times as long for a forged one.
func (p *PurchaseTokens) signed(text string) (claims jwt.RegisteredClaims, ok bool) {
	last := strings.LastIndexByte(text, '.')
	body, ok := strings.CutPrefix(text[:max(last, 0)], p.header+".")
	if !ok {
		return claims, false
	}
	mac, err := p.parser.DecodeSegment(text[last+1:])
	if err != nil || !slices.ContainsFunc(p.keys, func(key []byte) bool {
		return jwt.SigningMethodHS256.Verify(text[:last], mac, key) == nil
	}) {
		return claims, false
	}
	raw, err := p.parser.DecodeSegment(body)
	return claims, err == nil && json.Unmarshal(raw, &claims) == nil
}

// notInJWT tells the characters that no token has. The library's decoder passes over line breaks.
func notInJWT(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return false
	}
	return true
}
