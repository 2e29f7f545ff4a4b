package service

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"stockade/biz/sale"
)

// MaxKey is the longest Idempotency-Key, in bytes.
const MaxKey = 255

// PurchaseRequest is one buyer's wish to buy.
type PurchaseRequest struct {
	SKU      string
	Buyer    string
	Key      string // Idempotency-Key; empty: the request cannot be repeated
	Quantity int64
}

// Validate returns an *sale.InputError naming the first field that is out of range.
func (r PurchaseRequest) Validate() error {
	switch {
	case !sale.ValidSKUID(r.SKU):
		return sale.BadInput("sku", "must match "+sale.SKUIDPattern)
	case !ValidBuyer(r.Buyer):
		return sale.BadInput("X-Buyer-Id", fmt.Sprintf("must be 1 to %d bytes of printable UTF-8", sale.MaxBuyerID))
	case r.Key != "" && !ValidKey(r.Key):
		return sale.BadInput("Idempotency-Key", fmt.Sprintf("must be 1 to %d printable ASCII characters", MaxKey))
	case r.Quantity < 1 || r.Quantity > sale.MaxQuantity:
		return sale.BadInput("quantity", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxQuantity))
	}
	return nil
}

// ValidBuyer reports whether id can be a buyer's id.
func ValidBuyer(id string) bool {
	if id == "" || len(id) > sale.MaxBuyerID || !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// ValidKey reports whether key can be an Idempotency-Key.
func ValidKey(key string) bool {
	if key == "" || len(key) > MaxKey {
		return false
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// StockView is what the public may know of a SKU.
type StockView struct {
	Listing sale.Listing
	Left    int64 // units left in the gate, as this node last saw them
	Fresh   bool  // false: Left is not known
}
