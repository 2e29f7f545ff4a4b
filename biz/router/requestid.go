package router

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/handler"
)

const maxRequestID = 64 // bytes

// requestID puts the request's id into the answer, where handlers and the log find it: the caller's own when it is
// harmless, else a new one.
func requestID(ctx context.Context, c *app.RequestContext) {
	given := c.Request.Header.PeekAll(handler.RequestIDHeader)
	if len(given) == 1 && validRequestID(given[0]) {
		c.Response.Header.SetBytesV(handler.RequestIDHeader, given[0])
	} else {
		var raw [16]byte
		binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
		binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
		var text [32]byte
		hex.Encode(text[:], raw[:])
		c.Response.Header.SetBytesV(handler.RequestIDHeader, text[:])
	}
	c.Next(ctx)
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, ch := range id {
		switch {
		case 'a' <= ch && ch <= 'z', 'A' <= ch && ch <= 'Z', '0' <= ch && ch <= '9':
		case ch == '.', ch == '_', ch == '-':
		default:
			return false
		}
	}
	return true
}
