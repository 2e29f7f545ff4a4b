package router

import (
	"bytes"
	"context"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/handler"
)

// framing refuses requests whose end two servers could see at different places, and bodies that nobody will read.
// hertz takes Content-Length beside Transfer-Encoding, and any Transfer-Encoding for chunked.
func framing(ctx context.Context, c *app.RequestContext) {
	if field := ambiguous(c.Request.Header.RawHeaders()); field != "" {
		c.SetConnectionClose()
		_ = c.Request.CloseBodyStream()
		(&handler.Problem{
			Code: handler.BadRequest, Field: field, Detail: "must leave no doubt where the request ends",
		}).Write(c)
		c.Abort()
		return
	}
	if c.Request.Header.ContentLength() > handler.MaxBody {
		handler.TooLarge(c).Write(c)
		c.Abort()
		return
	}
	c.Next(ctx)
	if c.Request.IsBodyStream() && c.Request.Header.ContentLength() < 0 {
		// A chunked body that nobody wanted: hertz would skip it to its end, wherever that is.
		c.SetConnectionClose()
		_ = c.Request.CloseBodyStream()
	}
}

// ambiguous names the header that makes the length of a request doubtful, if there is one.
func ambiguous(raw []byte) string {
	lengths, encodings := 0, 0
	for len(raw) > 0 {
		line := raw
		if end := bytes.IndexByte(raw, '\n'); end >= 0 {
			line, raw = raw[:end], raw[end+1:]
		} else {
			raw = nil
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
		case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
			encodings++
			if !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return "Transfer-Encoding"
			}
		}
	}
	switch {
	case encodings > 1 || encodings > 0 && lengths > 0:
		return "Transfer-Encoding"
	case lengths > 1:
		return "Content-Length"
	}
	return ""
}
