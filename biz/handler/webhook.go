package handler

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Bounds of signed callbacks, after Standard Webhooks.
const (
	webhookTolerance = 5 * time.Minute // between the sender's clock and ours
	secretPrefix     = "whsec_"
	minSecret        = 24 // bytes of a key
	maxSecret        = 64
	maxSecrets       = 2 // one is being rotated
)

// Webhooks checks the signatures of callbacks. The zero value knows no secret and believes nobody.
type Webhooks struct {
	keys []*standardwebhooks.Webhook
}

// NewWebhooks takes at most two secrets, each whsec_ and the base64 of 24 to 64 bytes. Its errors do not repeat them.
func NewWebhooks(secrets []string) (*Webhooks, error) {
	if len(secrets) > maxSecrets {
		return nil, fmt.Errorf("there are %d: at most %d can be in use", len(secrets), maxSecrets)
	}
	w := &Webhooks{}
	for i, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
			return nil, fmt.Errorf("number %d must be %s and the base64 of %d to %d bytes", i+1, secretPrefix, minSecret, maxSecret)
		}
		checker, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, err
		}
		w.keys = append(w.keys, checker)
	}
	return w, nil
}

func (w *Webhooks) enabled() bool { return len(w.keys) > 0 }

// verify returns the problem of a callback that its sender's secret did not sign just now.
func (w *Webhooks) verify(c *app.RequestContext, body []byte, now time.Time) *Problem {
	signed := http.Header{}
	for _, name := range []string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		values := c.Request.Header.PeekAll(name)
		if len(values) != 1 || len(values[0]) == 0 {
			return badInput(BadSignature, name, "must be given once")
		}
		signed.Set(name, string(values[0]))
	}
	if !w.signed(body, signed) {
		return badInput(BadSignature, standardwebhooks.HeaderWebhookSignature, "must be made with a secret of this service")
	}
	// The library asks the clock of the system; ours is given.
	sent, err := strconv.ParseInt(signed.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
	if age := now.Sub(time.Unix(sent, 0)); err != nil || age > webhookTolerance || age < -webhookTolerance {
		return badInput(BadSignature, standardwebhooks.HeaderWebhookTimestamp, "must be within 5 minutes of "+now.UTC().Format(time.RFC3339))
	}
	return nil
}

func (w *Webhooks) signed(body []byte, header http.Header) bool {
	for _, key := range w.keys {
		if key.VerifyIgnoringTimestamp(body, header) == nil {
			return true
		}
	}
	return false
}

// SignWebhook returns the headers of a callback, in the form of name and value in turn, made with one secret of
// NewWebhooks.
func SignWebhook(secret, id string, at time.Time, body []byte) ([]string, error) {
	if _, err := NewWebhooks([]string{secret}); err != nil {
		return nil, errors.New("the secret must be " + secretPrefix + " and the base64 of 24 to 64 bytes")
	}
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	signature, err := signer.Sign(id, at, body)
	if err != nil {
		return nil, err
	}
	return []string{
		standardwebhooks.HeaderWebhookID, id,
		standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10),
		standardwebhooks.HeaderWebhookSignature, signature,
	}, nil
}
