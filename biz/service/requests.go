package service

import (
	"fmt"

	"github.com/google/uuid"

	"stockade/biz/sale"
)

// MaxKey is the longest Idempotency-Key, in bytes.
const MaxKey = 255

// PurchaseRequest is one buyer's wish to buy.
type PurchaseRequest struct {
	SKU      string
	Buyer    string
	Key      string // Idempotency-Key
	Quantity int64

	// Order is the id that a purchase token of this buyer and SKU carries, which whoever calls has checked; zero: no
	// token. Without Key and Order the request cannot be repeated.
	Order sale.OrderID
	// Expired says that the token may not buy any more. It may still ask for the order that came of it.
	Expired bool
}

// tokened tells whether the request came with a purchase token.
func (r PurchaseRequest) tokened() bool { return r.Order != sale.OrderID{} }

// keyed tells whether the request can be a repetition of an earlier one, with the same order id.
func (r PurchaseRequest) keyed() bool { return r.Key != "" || r.tokened() }

// orderID is the id of the order that may come of the request: the same on every node if it is keyed, else a new one.
func (r PurchaseRequest) orderID() (sale.OrderID, error) {
	switch {
	case r.tokened():
		return r.Order, nil
	case r.Key != "":
		return sale.DeriveOrderID(r.SKU, r.Buyer, r.Key), nil
	}
	id, err := uuid.NewV7()
	return sale.OrderID(id), err
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
	case r.Key != "" && r.tokened():
		return sale.BadInput("Idempotency-Key", "must not be given with a purchase token, whose id names the order")
	case r.Quantity < 1 || r.Quantity > sale.MaxQuantity:
		return sale.BadInput("quantity", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxQuantity))
	}
	return nil
}

// ValidBuyer reports whether id can be a buyer's id.
func ValidBuyer(id string) bool { return sale.ValidBuyerID(id) }

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
