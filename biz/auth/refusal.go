package auth

import "errors"

// Headers of a buyer's request that carry credentials.
const (
	buyerHeader = "X-Buyer-Id"
	tokenHeader = "Authorization"

	// SignatureHeader carries the signature of a request that another server makes for a buyer.
	SignatureHeader = "Stockade-Signature"
)

// Refusal is why a buyer's credential is not accepted.
type Refusal struct {
	Header    string // that is wrong, or missing
	Detail    string // for humans
	Challenge string // for WWW-Authenticate
}

func (r *Refusal) Error() string { return r.Header + ": " + r.Detail }

// ErrNoncesFull refuses a signed request that may be good: this node remembers as many as it may.
var ErrNoncesFull = errors.New("as many signed requests are remembered as may be")

func refuse(header, detail string) error {
	r := &Refusal{Header: header, Detail: detail}
	switch header {
	case tokenHeader:
		r.Challenge = `Bearer error="invalid_token"`
	case SignatureHeader:
		r.Challenge = SignatureHeader
	default:
		r.Challenge = `Gateway header="` + buyerHeader + `"`
	}
	return r
}
