package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const testSigner = "shop"

func signedConfig() Config {
	cfg := DefaultConfig()
	cfg.Buyers = []string{BySigned}
	cfg.Signers = []string{testSigner + ":" + testSecret, "other:" + strings.Repeat("o", MinSecret)}
	return cfg
}

// purchase is a signed request as the service sees it.
func purchase(t testing.TB, at time.Time) (header string, r SignedRequest) {
	t.Helper()
	r = SignedRequest{
		Method: "POST", Target: "/v1/skus/demo/orders?a=%2F", Buyer: "u1", Key: "k1", Token: "t1", Body: []byte(`{"quantity":1}`),
	}
	req, err := http.NewRequest(r.Method, "http://stockade.example"+r.Target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", r.Key)
	req.Header.Set("Purchase-Token", r.Token)
	if err := SignRequest(req, testSigner, testSecret, r.Buyer, r.Body, at); err != nil {
		t.Fatal(err)
	}
	if req.Header.Get("X-Buyer-Id") != r.Buyer {
		t.Fatalf("signed for %q", req.Header.Get("X-Buyer-Id"))
	}
	return req.Header.Get(SignatureHeader), r
}

func (b *Buyers) judge(header string, r SignedRequest) error {
	s, err := b.ReadSignature(header)
	if err != nil {
		return err
	}
	return b.Verify(s, r)
}

func checkSignature(t *testing.T, err error, words string) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, words) || refusal.Header != SignatureHeader {
		t.Errorf("got %v, want a refusal with %q", err, words)
	}
}

func TestASignatureIsGoodOnce(t *testing.T) {
	b := newBuyers(t, signedConfig())
	header, r := purchase(t, testNow)
	if err := b.judge(header, r); err != nil {
		t.Fatalf("a good signature: %v", err)
	}
	checkSignature(t, b.judge(header, r), "used before")
	if header, r = purchase(t, testNow); b.judge(header, r) != nil {
		t.Error("the next signature of the same request is refused")
	}
}

// Every part that is signed counts. What was refused is not remembered: the true request still passes.
func TestEverySignedPartCounts(t *testing.T) {
	b := newBuyers(t, signedConfig())
	header, good := purchase(t, testNow)
	for name, change := range map[string]func(*SignedRequest){
		"method":          func(r *SignedRequest) { r.Method = "GET" },
		"token":           func(r *SignedRequest) { r.Token = "t2" },
		"path":            func(r *SignedRequest) { r.Target = "/v1/skus/other/orders?a=%2F" },
		"query":           func(r *SignedRequest) { r.Target = "/v1/skus/demo/orders?a=%2f" },
		"no query":        func(r *SignedRequest) { r.Target = "/v1/skus/demo/orders" },
		"buyer":           func(r *SignedRequest) { r.Buyer = "u2" },
		"key":             func(r *SignedRequest) { r.Key = "k2" },
		"no key":          func(r *SignedRequest) { r.Key = "" },
		"key into buyer":  func(r *SignedRequest) { r.Buyer, r.Key = "u1k", "1" },
		"body":            func(r *SignedRequest) { r.Body = []byte(`{"quantity":2}`) },
		"longer body":     func(r *SignedRequest) { r.Body = []byte(`{"quantity":1} `) },
		"no body":         func(r *SignedRequest) { r.Body = nil },
		"method in lower": func(r *SignedRequest) { r.Method = "post" },
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			change(&r)
			checkSignature(t, b.judge(header, r), "not one of this request")
		})
	}
	parts := strings.Split(header, ",")
	for name, changed := range map[string]string{
		"another signer": strings.Replace(header, "key=shop", "key=other", 1),
		"another time":   strings.Replace(header, parts[1], fmt.Sprintf("t=%d", testNow.Unix()+1), 1),
		"another nonce":  strings.Replace(header, parts[2], "nonce="+strings.Repeat("n", 24), 1),
		"another mac":    header[:len(header)-1] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", header[len(header)-1])+1)%16]),
	} {
		t.Run(name, func(t *testing.T) { checkSignature(t, b.judge(changed, good), "not one of this request") })
	}
	if err := b.judge(header, good); err != nil {
		t.Errorf("the request as it was signed: %v", err)
	}
}

func TestSignaturesOfAnotherTime(t *testing.T) {
	b := newBuyers(t, signedConfig())
	for off, good := range map[time.Duration]bool{
		-31 * time.Second: false, -30 * time.Second: true, 0: true, 30 * time.Second: true, 31 * time.Second: false, -time.Hour: false,
	} {
		header, r := purchase(t, testNow.Add(off))
		err := b.judge(header, r)
		if good && err != nil {
			t.Errorf("%v: %v", off, err)
		}
		if !good {
			checkSignature(t, err, "not made just now")
		}
	}
}

func TestSignatureHeadersAreReadStrictly(t *testing.T) {
	b := newBuyers(t, signedConfig())
	header, _ := purchase(t, testNow)
	if _, err := b.ReadSignature(header); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(header, ",")
	key, at, nonce, mac := parts[0], parts[1], parts[2], parts[3]
	join := func(parts ...string) string { return strings.Join(parts, ",") }
	for name, bad := range map[string]string{
		"empty": "", "no key": join(at, nonce, mac), "no time": join(key, nonce, mac), "no nonce": join(key, at, mac),
		"no mac": join(key, at, nonce), "another order": join(at, key, nonce, mac), "twice": header + "," + mac,
		"comma behind": header + ",", "spaces": strings.Join(parts, ", "), "two headers in one": header + "," + header,
		"version 2":           join(key, at, nonce, "v2"+mac[2:]),
		"mac in upper case":   join(key, at, nonce, "v1="+strings.ToUpper(mac[3:])+"A")[:len(header)],
		"short mac":           header[:len(header)-2],
		"long mac":            header + "00",
		"mac is not hex":      header[:len(header)-1] + "g",
		"short nonce":         join(key, at, "nonce="+strings.Repeat("n", minNonce-1), mac),
		"long nonce":          join(key, at, "nonce="+strings.Repeat("n", maxNonce+1), mac),
		"nonce with a dot":    join(key, at, nonce+".", mac),
		"nonce with a break":  join(key, at, nonce+"\n", mac),
		"time with a sign":    join(key, "t=+"+at[2:], nonce, mac),
		"time with a zero":    join(key, "t=0"+at[2:], nonce, mac),
		"negative time":       join(key, "t=-1", nonce, mac),
		"time with a point":   join(key, at+".5", nonce, mac),
		"time past all":       join(key, "t=9223372036854775807", nonce, mac),
		"key with a space":    join(key+" ", at, nonce, mac),
		"empty key":           join("key=", at, nonce, mac),
		"longer than allowed": join(key, at, nonce, mac) + strings.Repeat(" ", maxSignature),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.ReadSignature(bad)
			checkSignature(t, err, "must be key=ID")
		})
	}
	_, err := b.ReadSignature(strings.Replace(header, "key=shop", "key=nobody", 1))
	checkSignature(t, err, "not known here")
}

func TestWhatCannotBeSigned(t *testing.T) {
	for word, sign := range map[string]func(*http.Request) error{
		"signer": func(r *http.Request) error { return SignRequest(r, "a,b", testSecret, "u1", nil, testNow) },
		"secret": func(r *http.Request) error { return SignRequest(r, "a", "short", "u1", nil, testNow) },
		"buyer":  func(r *http.Request) error { return SignRequest(r, "a", testSecret, "u\n1", nil, testNow) },
	} {
		req, err := http.NewRequest("GET", "http://stockade.example/v1/orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sign(req); err == nil || !strings.HasPrefix(err.Error(), word+": ") || req.Header.Get(SignatureHeader) != "" {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// A way that is not switched on is refused, with those that are.
func TestWaysThatAreOff(t *testing.T) {
	loopback, far := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("203.0.113.9")
	header, jwt, signed := newBuyers(t, DefaultConfig()), newBuyers(t, jwtConfig()), newBuyers(t, signedConfig())
	if err := header.Gateway(loopback); err != nil {
		t.Errorf("a gateway: %v", err)
	}
	for name, tc := range map[string]struct {
		err                      error
		header, words, challenge string
	}{
		"not a gateway": {header.Gateway(far), "X-Buyer-Id", "the peer is none; this node takes header", `Gateway header="X-Buyer-Id"`},
		"nobody":        {header.Gateway(netip.Addr{}), "X-Buyer-Id", "the peer is none", `Gateway header="X-Buyer-Id"`},
		"only jwt":      {jwt.Gateway(loopback), "Authorization", "this node takes jwt", "Bearer"},
		"only signed":   {signed.Gateway(loopback), SignatureHeader, "this node takes signed", SignatureHeader},
		"token": {
			func() error { _, err := header.Bearer("Bearer " + hs256(t, nil)); return err }(), "Authorization",
			"is not taken here; this node takes header", `Bearer error="invalid_token"`,
		},
		"signature": {
			func() error { _, err := jwt.ReadSignature("x"); return err }(), SignatureHeader,
			"is not taken here; this node takes jwt", SignatureHeader,
		},
	} {
		var refusal *Refusal
		if !errors.As(tc.err, &refusal) || refusal.Header != tc.header || !strings.Contains(refusal.Detail, tc.words) || refusal.Challenge != tc.challenge {
			t.Errorf("%s: got %#v", name, tc.err)
		}
	}
	none := jwtConfig()
	none.Audience = ""
	if _, err := NewBuyers(none, BuyerParts{}); err == nil || !strings.HasPrefix(err.Error(), "auth.audience: ") {
		t.Errorf("jwt without an audience: %v", err)
	}
}
