package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stockade/biz/sale"
)

// Bounds of a signature's parts.
const (
	maxSignature = 512 // bytes of the header
	minNonce     = 16  // characters
	maxNonce     = 64
	maxUnixTime  = 1 << 40 // far from where seconds overflow
)

const notNow = "the signature was not made just now; is the signer's clock right?"

// signerPattern is what a signer's id looks like.
const signerPattern = `[A-Za-z0-9._-]{1,64}`

const maxSigners = 100

var signerID = regexp.MustCompile(`^` + signerPattern + `$`)

func validSigner(id string) bool { return signerID.MatchString(id) }

// validSigners returns a *sale.InputError for the first signer that cannot be used.
func validSigners(list []string) error {
	if len(list) > maxSigners {
		return sale.BadInput("signers", fmt.Sprintf("must be at most %d", maxSigners))
	}
	ids := map[string]bool{}
	for i, signer := range list {
		id, secret, _ := strings.Cut(signer, ":")
		if !validSigner(id) || len(secret) < MinSecret || ids[id] {
			return sale.BadInput("signers", fmt.Sprintf("number %d must be id:secret with an id of its own that matches %s, and a secret of at least %d bytes",
				i+1, signerPattern, MinSecret))
		}
		ids[id] = true
	}
	return nil
}

// SignedRequest is what a signature covers besides its own time and nonce: each part as it is sent.
type SignedRequest struct {
	Method string
	Target string // path with query
	Buyer  string // X-Buyer-Id
	Key    string // Idempotency-Key; empty: none
	Token  string // Purchase-Token; empty: none
	Body   []byte
}

// Signature is a Stockade-Signature header, taken apart.
type Signature struct {
	key   string // of the signer
	unix  int64  // seconds, when it was made
	time  string // the same, as sent
	nonce string
	mac   [sha256.Size]byte
}

// mac signs one version of the protocol: a change of what is covered needs another first line.
func (r SignedRequest) mac(secret []byte, unix, nonce string) (mac [sha256.Size]byte) {
	body := sha256.Sum256(r.Body)
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte(strings.Join([]string{
		"v1", r.Method, r.Target, r.Buyer, r.Key, r.Token, hex.EncodeToString(body[:]), unix, nonce,
	}, "\n"))) // never fails
	h.Sum(mac[:0])
	return mac
}

// SignRequest signs a request of another server for a buyer: it sets X-Buyer-Id and Stockade-Signature. Method, URL,
// Idempotency-Key, Purchase-Token and body must be what will be sent. Every try needs a signature of its own, with the same
// Idempotency-Key. An error names what cannot be signed.
func SignRequest(req *http.Request, signer, secret, buyer string, body []byte, now time.Time) error {
	switch {
	case !validSigner(signer):
		return errors.New("signer: must match " + signerPattern)
	case len(secret) < MinSecret:
		return errors.New("secret: must have at least " + strconv.Itoa(MinSecret) + " bytes")
	case !sale.ValidBuyerID(buyer):
		return errors.New("buyer: must be 1 to " + strconv.Itoa(sale.MaxBuyerID) + " bytes of printable UTF-8")
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet // net/http means the same
	}
	var random [18]byte
	_, _ = rand.Read(random[:]) // never fails
	nonce, unix := base64.RawURLEncoding.EncodeToString(random[:]), strconv.FormatInt(now.Unix(), 10)
	mac := SignedRequest{
		Method: method, Target: req.URL.RequestURI(), Buyer: buyer, Key: req.Header.Get("Idempotency-Key"),
		Token: req.Header.Get("Purchase-Token"), Body: body,
	}.mac([]byte(secret), unix, nonce)
	req.Header.Set(buyerHeader, buyer)
	req.Header.Set(SignatureHeader, "key="+signer+",t="+unix+",nonce="+nonce+",v1="+hex.EncodeToString(mac[:]))
	return nil
}

// signatures checks them.
type signatures struct {
	secrets map[string][]byte // by signer
	window  time.Duration
	now     func() time.Time
	nonces  *nonces
}

func newSignatures(cfg Config, now func() time.Time) *signatures {
	window := time.Duration(cfg.SignatureWindowMs) * time.Millisecond
	s := &signatures{secrets: map[string][]byte{}, window: window, now: now, nonces: newNonces(window, cfg.MaxNonces)}
	for _, signer := range cfg.Signers {
		id, secret, _ := strings.Cut(signer, ":")
		s.secrets[id] = []byte(secret)
	}
	return s
}

func (s *signatures) read(header string) (Signature, error) {
	sig, ok := parseSignature(header)
	if !ok {
		return sig, refuse(SignatureHeader, "must be key=ID,t=UNIX-SECONDS,nonce=16 to 64 of A-Za-z0-9_-,v1=HEX")
	}
	if s.secrets[sig.key] == nil {
		return sig, refuse(SignatureHeader, "the signature's key is not known here")
	}
	if !s.timely(sig) {
		return sig, refuse(SignatureHeader, notNow)
	}
	return sig, nil
}

func (s *signatures) timely(sig Signature) bool {
	age := s.now().Sub(time.Unix(sig.unix, 0))
	return -s.window <= age && age <= s.window
}

func (s *signatures) verify(sig Signature, r SignedRequest) error {
	want := r.mac(s.secrets[sig.key], sig.time, sig.nonce)
	if !hmac.Equal(want[:], sig.mac[:]) {
		return refuse(SignatureHeader, "the signature is not one of this request")
	}
	if !s.timely(sig) { // reading the body takes as long as the client likes
		return refuse(SignatureHeader, notNow)
	}
	return s.nonces.use(sig.key, sig.nonce, sig.unix, s.now().Unix())
}

// parseSignature takes a header apart that has all four parts in their order, and nothing else.
func parseSignature(header string) (s Signature, ok bool) {
	if len(header) > maxSignature {
		return s, false
	}
	rest := header
	part := func(name string, last bool) (value string) {
		var found, more bool
		if rest, found = strings.CutPrefix(rest, name+"="); found {
			value, rest, more = strings.Cut(rest, ",")
			found = more != last
		}
		if !found {
			rest = ""
			return ""
		}
		return value
	}
	s.key, s.time, s.nonce = part("key", false), part("t", false), part("nonce", false)
	mac := part("v1", true)
	if !validSigner(s.key) || !validNonce(s.nonce) || len(mac) != hex.EncodedLen(len(s.mac)) || mac != strings.ToLower(mac) {
		return s, false
	}
	if _, err := hex.Decode(s.mac[:], []byte(mac)); err != nil {
		return s, false
	}
	var err error
	s.unix, err = strconv.ParseInt(s.time, 10, 64)
	return s, err == nil && s.unix >= 0 && s.unix < maxUnixTime && strconv.FormatInt(s.unix, 10) == s.time
}

func validNonce(nonce string) bool {
	return minNonce <= len(nonce) && len(nonce) <= maxNonce && !strings.ContainsFunc(nonce, func(r rune) bool {
		return r == '.' || notInJWT(r)
	})
}
