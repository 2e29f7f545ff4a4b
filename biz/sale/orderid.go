package sale

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// OrderID is a UUID: version 8 derived from the Idempotency-Key of the request, else version 7, made for the request or for
// its purchase token.
type OrderID [16]byte

// DeriveOrderID maps (SKU, buyer, Idempotency-Key) to a version 8 UUID: the first 122 free bits of a SHA-256 over
// the three parts, each behind its length. The same parts give the same id on every node.
func DeriveOrderID(sku, buyer, key string) OrderID {
	buf := make([]byte, 0, 12+len(sku)+len(buyer)+len(key))
	for _, part := range [...]string{sku, buyer, key} {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(part)))
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	var id OrderID
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the canonical form, 36 lower-case characters.
func (id OrderID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// ParseOrderID reads the 36-character form, in either case. Anything else is an *InputError for order_id.
func ParseOrderID(s string) (OrderID, error) {
	var id OrderID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, BadInput("order_id", "must be a UUID of 36 characters")
	}
	digits := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return OrderID{}, BadInput("order_id", "must be a UUID of 36 characters")
	}
	return id, nil
}

// MarshalText writes the canonical form, so that an OrderID is a string in JSON.
func (id OrderID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the canonical form.
func (id *OrderID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseOrderID(string(b))
	return err
}
