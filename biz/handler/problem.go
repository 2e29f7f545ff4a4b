package handler

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/go-json-experiment/json/jsontext"

	"stockade/biz/sale"
)

const (
	problemType = "application/problem+json"
	jsonType    = "application/json"
	timeFormat  = "2006-01-02T15:04:05.000Z07:00"

	// RequestIDHeader carries the request's id in both directions; the router sets it before any handler runs.
	RequestIDHeader = "X-Request-Id"

	retryAfterJitter = 2 // whole seconds; spreads the callers that were refused together
)

// Problem is an answer that is not a success, in the form of RFC 9457. Zero members are left out.
type Problem struct {
	Code       Code
	Detail     string      // for humans, of this occurrence
	Field      string      // of bad input: the JSON member, header or parameter, as the caller wrote it
	Reason     sale.Reason // of a verdict
	Limit      int64       // of LIMIT_REACHED: live units per buyer
	OpensAt    time.Time   // of NOT_ON_SALE
	ClosesAt   time.Time   // of NOT_ON_SALE
	Unknown    bool        // of BUSY, and of NOT_ON_SALE while nobody can be asked: an order with OrderID may turn out to exist
	OrderID    sale.OrderID
	RetryAfter time.Duration // least wait; codes that may be asked again have at least a second
}

// badInput is the problem of a field that cannot be used.
func badInput(code Code, field, detail string) *Problem {
	return &Problem{Code: code, Field: field, Detail: detail}
}

// Write makes p the answer.
func (p *Problem) Write(c *app.RequestContext) {
	info := &codes[p.Code]
	c.Response.SetStatusCode(info.Status)
	c.Response.Header.SetContentType(problemType)
	switch p.Code {
	case BuyerMissing:
		c.Response.Header.Set("WWW-Authenticate", `Gateway header="`+BuyerHeader+`"`)
	case Unauthenticated:
		c.Response.Header.Set("WWW-Authenticate", "Bearer")
	case BadSignature:
		c.Response.Header.Set("WWW-Authenticate", "StandardWebhooks")
	}
	if p.mayRepeat() {
		SetInt(c, "Retry-After", p.retryAfter())
	}
	buf := c.Response.BodyBuffer()
	buf.B = p.appendJSON(buf.B[:0], info, c)
}

func (p *Problem) mayRepeat() bool {
	switch p.Code {
	case RateLimited, Busy, Retry, Conflict, TooManyStreams, OrderQueued:
		return true
	}
	return false
}

// retryAfter is in whole seconds, rounded up, at least one, with jitter.
func (p *Problem) retryAfter() int64 {
	least := max(int64((p.RetryAfter+time.Second-1)/time.Second), 1)
	return least + rand.Int64N(retryAfterJitter)
}

func (p *Problem) appendJSON(b []byte, info *CodeInfo, c *app.RequestContext) []byte {
	b = append(b, `{"type":"/errors/`...)
	b = append(b, info.Name...)
	b = append(b, `","title":"`...)
	b = append(b, info.Title...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(info.Status), 10)
	if p.Detail != "" {
		b = appendText(append(b, `,"detail":`...), p.Detail)
	}
	b = append(b, `,"code":"`...)
	b = append(b, info.Name...)
	b = append(b, '"')
	if info.Verdict {
		b = strconv.AppendInt(append(b, `,"result":`...), int64(info.Result), 10)
	}
	if p.Reason != "" {
		b = appendText(append(b, `,"reason":`...), string(p.Reason))
	}
	if p.Field != "" {
		b = appendText(append(b, `,"field":`...), p.Field)
	}
	if p.Limit != 0 {
		b = strconv.AppendInt(append(b, `,"limit":`...), p.Limit, 10)
	}
	if !p.OpensAt.IsZero() {
		b = appendTime(append(b, `,"opens_at":`...), p.OpensAt)
	}
	if !p.ClosesAt.IsZero() {
		b = appendTime(append(b, `,"closes_at":`...), p.ClosesAt)
	}
	if p.Unknown {
		b = append(b, `,"outcome":"unknown","order_id":"`...)
		b = append(append(b, p.OrderID.String()...), '"')
	}
	b = append(b, `,"request_id":"`...)
	b = append(b, requestID(c)...)
	return append(b, '"', '}')
}

// requestID is a view into the response's headers. The router lets no character in that JSON would have to escape.
func requestID(c *app.RequestContext) []byte { return c.Response.Header.Peek(RequestIDHeader) }

func appendText(b []byte, s string) []byte {
	// The only error is about invalid UTF-8, which is replaced.
	b, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timeFormat)
	return append(b, '"')
}

// SetInt sets a header of the answer to a number. Numbers below 100 cost no allocation.
func SetInt(c *app.RequestContext, header string, n int64) {
	c.Response.Header.Set(header, strconv.FormatInt(n, 10))
}
