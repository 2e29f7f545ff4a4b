package handler

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"strconv"
	"sync"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/go-json-experiment/json/jsontext"

	"stockade/biz/sale"
)

// MaxBody is how much of a request's body is read, in bytes.
const MaxBody = 64 << 10

const (
	maxNesting = 8 // arrays and objects inside one another; every body we know is flat
	bodyField  = "body"
	firstRead  = 512     // bytes; a purchase fits
	maxDrain   = 1 << 20 // bytes of a refused body that are read and thrown away
)

// decoders lends out JSON decoders with their buffers, which keeps the body of a purchase free of allocations.
type decoders struct{ pool sync.Pool }

type decoder struct {
	raw  []byte
	from bytes.Buffer
	json jsontext.Decoder
	name []byte
}

func (d *decoders) get() *decoder {
	if free, ok := d.pool.Get().(*decoder); ok {
		return free
	}
	return &decoder{raw: make([]byte, 0, firstRead)}
}

func (d *decoders) put(used *decoder) { d.pool.Put(used) }

// read takes the whole body of the request, which must be JSON by its headers and at most MaxBody long.
func (d *decoder) read(c *app.RequestContext) *Problem {
	if problem := jsonOnly(c); problem != nil {
		return problem
	}
	var problem *Problem
	d.raw, problem = appendBody(d.raw[:0], c)
	return problem
}

// Body reads the whole body of the request, of at most MaxBody bytes, and leaves it for the handler to read again.
func Body(c *app.RequestContext) ([]byte, *Problem) {
	if !c.Request.IsBodyStream() {
		return c.Request.BodyBytes(), nil
	}
	raw, problem := appendBody(make([]byte, 0, firstRead), c)
	if problem == nil {
		c.Request.SetBodyRaw(raw)
	}
	return raw, problem
}

func appendBody(raw []byte, c *app.RequestContext) ([]byte, *Problem) {
	if !c.Request.IsBodyStream() {
		return append(raw, c.Request.BodyBytes()...), nil
	}
	stream := c.Request.BodyStream()
	for {
		if len(raw) == cap(raw) {
			raw = append(raw, 0)[:len(raw)]
		}
		n, err := stream.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case len(raw) > MaxBody:
			return raw, TooLarge(c)
		case err == io.EOF:
			if c.Request.Header.ContentLength() < 0 {
				_ = c.Request.CloseBodyStream() // tells the router that a chunked body has been read
			}
			return raw, nil
		case err != nil:
			c.SetConnectionClose() // where the next request would begin is unknown
			_ = c.Request.CloseBodyStream()
			return raw, badInput(MalformedBody, bodyField, "could not be read to its end")
		}
	}
}

// TooLarge is the problem of a body over MaxBody. It closes the connection after the answer. A body that is not much
// larger is read to its end first: a client that is still sending when the connection closes may never see the answer.
func TooLarge(c *app.RequestContext) *Problem {
	c.SetConnectionClose()
	if c.Request.IsBodyStream() {
		if c.Request.Header.ContentLength() <= maxDrain {
			_, _ = io.CopyN(io.Discard, c.Request.BodyStream(), maxDrain)
		}
		_ = c.Request.CloseBodyStream()
	}
	return badInput(BodyTooLarge, bodyField, "must be at most "+strconv.Itoa(MaxBody)+" bytes")
}

func jsonOnly(c *app.RequestContext) *Problem {
	if len(c.Request.Header.PeekContentEncoding()) > 0 {
		return badInput(UnsupportedMedia, "Content-Encoding", "must not be given")
	}
	kind := c.Request.Header.ContentType()
	if len(kind) == 0 || string(kind) == jsonType {
		return nil
	}
	if plain, _, err := mime.ParseMediaType(string(kind)); err != nil || plain != jsonType {
		return badInput(UnsupportedMedia, "Content-Type", "must be "+jsonType)
	}
	return nil
}

// members walks over the one JSON object in d.raw. For each member it calls value, which reads exactly one value from
// d.json and tells whether the name is known.
func (d *decoder) members(value func(name []byte) (known bool, problem *Problem)) *Problem {
	if len(bytes.TrimLeft(d.raw, " \t\r\n")) == 0 {
		return badInput(MalformedBody, bodyField, "must not be empty")
	}
	d.from = *bytes.NewBuffer(d.raw)
	d.json.Reset(&d.from)
	if d.json.PeekKind() != '{' {
		return badInput(MalformedBody, bodyField, "must be a JSON object")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return malformed(err)
	}
	for d.json.PeekKind() == '"' {
		quoted, err := d.json.ReadValue()
		if err != nil {
			return malformed(err)
		}
		d.name, _ = jsontext.AppendUnquote(d.name[:0], quoted)
		known, problem := value(d.name)
		if problem != nil {
			return problem
		}
		if !known {
			return badInput(MalformedBody, quoteName(string(d.name)), "is not known here")
		}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return malformed(err)
	}
	if _, err := d.json.ReadToken(); err != io.EOF {
		return badInput(MalformedBody, bodyField, "must end after the JSON object")
	}
	return nil
}

// nothing reads a body that may only be empty or {}.
func (d *decoder) nothing(c *app.RequestContext) *Problem {
	problem := d.readNoted(c)
	if problem == nil && len(d.raw) > 0 {
		problem = d.members(func([]byte) (bool, *Problem) { return false, nil })
	}
	return problem
}

func malformed(err error) *Problem {
	var where *jsontext.SyntacticError
	if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &where) {
		return badInput(MalformedBody, quoteName(where.JSONPointer.LastToken()), "must be given once")
	}
	return badInput(MalformedBody, bodyField, "must be JSON in UTF-8")
}

// scalar reads one value. Arrays and objects are skipped, as far as they are well-formed and shallow, and come back
// as nil: no member of ours has one.
func (d *decoder) scalar() (jsontext.Value, *Problem) {
	kind := d.json.PeekKind()
	if kind != '[' && kind != '{' {
		v, err := d.json.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		return v, nil
	}
	for outside := d.json.StackDepth(); ; {
		if _, err := d.json.ReadToken(); err != nil {
			return nil, malformed(err)
		}
		switch depth := d.json.StackDepth(); {
		case depth > maxNesting:
			return nil, badInput(MalformedBody, bodyField, "must not be nested so deeply")
		case depth == outside:
			return nil, nil
		}
	}
}

// integer reads a whole number from lo to hi, written without fraction and exponent.
func (d *decoder) integer(field string, lo, hi int64) (int64, *Problem) {
	v, problem := d.scalar()
	if problem != nil {
		return 0, problem
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, outOfRange(field, lo, hi)
	}
	return n, nil
}

func outOfRange(field string, lo, hi int64) *Problem {
	return badInput(InvalidField, field,
		"must be a whole number from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
}

// text reads a string; what says what the string should be.
func (d *decoder) text(field, what string) (string, *Problem) {
	v, problem := d.scalar()
	if problem != nil {
		return "", problem
	}
	if len(v) == 0 || v.Kind() != '"' {
		return "", badInput(InvalidField, field, "must be "+what)
	}
	plain, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", malformed(err)
	}
	return string(plain), nil
}

// purchase decodes the body of a purchase: {"quantity": 1 to 1000}.
func (d *decoder) purchase() (int64, *Problem) {
	var quantity int64
	problem := d.members(func(name []byte) (bool, *Problem) {
		if string(name) != "quantity" {
			return false, nil
		}
		var problem *Problem
		quantity, problem = d.integer("quantity", 1, sale.MaxQuantity)
		return true, problem
	})
	if problem != nil {
		return 0, problem
	}
	if quantity == 0 {
		return 0, outOfRange("quantity", 1, sale.MaxQuantity)
	}
	return quantity, nil
}
