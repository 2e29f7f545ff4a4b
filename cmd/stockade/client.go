package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"stockade/biz/handler"
	"stockade/conf"
)

const (
	defaultAdmin  = "http://127.0.0.1:8081"
	defaultPublic = "http://127.0.0.1:8080"
	adminEnv      = "STOCKADE_ADMIN_URL"
	publicEnv     = "STOCKADE_PUBLIC_URL"
	caFileEnv     = "STOCKADE_CA_FILE"

	callTimeout    = 70 * time.Second // a load or adjust waits for its reshare
	maxAnswerBytes = 8 << 20
)

// client calls one listener of the service.
type client struct {
	base   string
	source string   // the flag or variable that set base, or could
	header []string // names and values in turn, sent with every request
	reason string   // of what is changed, for the audit log; of the admin API alone
	hint   string   // for who is refused with 401
	http   *http.Client
}

// newClient checks an address: from the flag when it is given, else from the environment, else the default.
func (c *cli) newClient(flag, given, env, otherwise string) (*client, error) {
	base, source := given, "--"+flag
	if value, ok := c.lookup(env); base == "" && ok && value != "" {
		base, source = value, env
	} else if base == "" {
		base, source = otherwise, "--"+flag+" or "+env
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fail(exitUsage, fmt.Errorf("%s: must be a URL such as %s", source, otherwise))
	}
	trust, err := c.trust()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	return &client{
		base: strings.TrimRight(base, "/"), source: source, http: &http.Client{Timeout: callTimeout, Transport: transport},
	}, nil
}

// trust says whose certificates are believed.
func (c *cli) trust() (*tls.Config, error) {
	file := c.caFile
	if value, ok := c.lookup(caFileEnv); file == "" && ok {
		file = value
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return trust, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitConfig, fmt.Errorf("--ca-file: %w", err))
	}
	trust.RootCAs = x509.NewCertPool()
	if !trust.RootCAs.AppendCertsFromPEM(text) {
		return nil, fail(exitConfig, fmt.Errorf("--ca-file: %s has no certificate in PEM", file))
	}
	return trust, nil
}

// call sends one request and returns the body of a success. Every other answer is an error with its exit status.
func (cl *client) call(ctx context.Context, method, path string, body any, header ...string) (json.RawMessage, error) {
	status, answer, err := cl.send(ctx, method, path, body, header...)
	if err != nil {
		return nil, err
	}
	if status/100 != 2 {
		err := problemError(status, answer)
		if status == http.StatusUnauthorized && cl.hint != "" {
			err = fmt.Errorf("%w (%s)", err, cl.hint)
		}
		return nil, err
	}
	if len(answer) > 0 && !json.Valid(answer) {
		return nil, fail(exitUnavailable, fmt.Errorf("%s: the answer is not JSON; is %s right?", cl.shown(), cl.source))
	}
	return answer, nil
}

// send returns whatever the service answers. header holds names and values in turn.
func (cl *client) send(ctx context.Context, method, path string, body any, header ...string) (int, []byte, error) {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, payload)
	if err != nil {
		return 0, nil, fail(exitUsage, fmt.Errorf("%s: no request can be made of it", cl.source))
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if cl.reason != "" && method != http.MethodGet {
		req.Header.Set(handler.ReasonHeader, cl.reason)
	}
	for _, list := range [][]string{cl.header, header} {
		for i := 0; i+1 < len(list); i += 2 {
			req.Header.Set(list[i], list[i+1])
		}
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return 0, nil, cl.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return 0, nil, cl.unreachable(ctx, err)
	case len(answer) > maxAnswerBytes:
		return 0, nil, fail(exitUnavailable, fmt.Errorf("%s: the answer is larger than %d bytes", cl.shown(), maxAnswerBytes))
	}
	return resp.StatusCode, answer, nil
}

// unreachable explains a call without an answer. After a timeout the service may have done what was asked.
func (cl *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) && wrapped.Timeout() {
		return fail(exitTemporary, fmt.Errorf("%s did not answer in time; it may have done what was asked", cl.shown()))
	}
	if wrapped != nil {
		err = wrapped.Err // its own text repeats the URL
	}
	return fail(exitUnavailable, fmt.Errorf("%s cannot be reached: %w (set by %s)", cl.shown(), err, cl.source))
}

// shown is the address without credentials.
func (cl *client) shown() string { return conf.Redact(cl.base) }
