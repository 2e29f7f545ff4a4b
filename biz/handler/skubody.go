package handler

import (
	"fmt"
	"time"

	"stockade/biz/sale"
)

// newSKU decodes the body that creates a SKU. Only sku and total must be there; the sale then opens at once, has no
// end, and takes the defaults of package sale.
func (d *decoder) newSKU(now time.Time) (sale.SKU, int64, *Problem) {
	sku := sale.SKU{
		State: sale.Draft, OpensAt: now.UTC().Truncate(time.Millisecond), Limit: sale.DefaultLimit,
		PaymentWindow: sale.DefaultWindow, ReservePct: sale.DefaultReserve,
	}
	var total int64
	problem := d.members(func(name []byte) (known bool, problem *Problem) {
		switch string(name) {
		case "sku":
			sku.ID, problem = d.text("sku", "a string that matches "+sale.SKUIDPattern)
		case "total":
			total, problem = d.integer("total", 1, sale.MaxTotal)
		case "opens_at":
			sku.OpensAt, problem = d.instant("opens_at")
		case "closes_at":
			sku.ClosesAt, problem = d.instant("closes_at")
		case "limit":
			sku.Limit, problem = d.integer("limit", 1, sale.MaxQuantity)
		case "payment_window":
			sku.PaymentWindow, problem = d.duration("payment_window")
		case "slots":
			sku.Slots, problem = d.slots()
		case "reserve_pct":
			var pct int64
			pct, problem = d.integer("reserve_pct", 0, sale.MaxReservePct)
			sku.ReservePct = int(pct)
		case "purchase_token":
			sku.TokenRequired, problem = d.purchaseToken()
		default:
			return false, nil
		}
		return true, problem
	})
	switch {
	case problem != nil:
		return sku, 0, problem
	case total == 0:
		return sku, 0, outOfRange("total", 1, sale.MaxTotal)
	}
	if sku.Slots == 0 {
		sku.Slots = sale.SlotsFor(total)
	}
	if err := sku.Validate(); err != nil {
		return sku, 0, inputProblem(err)
	}
	return sku, total, nil
}

// adjustment decodes {"add": units}, which may be negative but not zero.
func (d *decoder) adjustment() (int64, *Problem) {
	var add int64
	problem := d.members(func(name []byte) (bool, *Problem) {
		if string(name) != "add" {
			return false, nil
		}
		var problem *Problem
		add, problem = d.integer("add", -sale.MaxTotal, sale.MaxTotal)
		return true, problem
	})
	if problem == nil && add == 0 {
		problem = badInput(InvalidField, "add", "must be a whole number, not zero")
	}
	return add, problem
}

// slots reads "auto", which is 0, or a number.
func (d *decoder) slots() (int, *Problem) {
	if d.json.PeekKind() != '"' {
		n, problem := d.integer("slots", 1, sale.MaxSlots)
		return int(n), problem
	}
	what := fmt.Sprintf("\"auto\" or a whole number from 1 to %d", sale.MaxSlots)
	word, problem := d.text("slots", what)
	if problem == nil && word != "auto" {
		problem = badInput(InvalidField, "slots", "must be "+what)
	}
	return 0, problem
}

// purchaseToken reads whether purchases need a token.
func (d *decoder) purchaseToken() (required bool, problem *Problem) {
	const what = `"` + tokenOptional + `" or "` + tokenRequired + `"`
	word, problem := d.text("purchase_token", what)
	if problem == nil && word != tokenOptional && word != tokenRequired {
		problem = badInput(InvalidField, "purchase_token", "must be "+what)
	}
	return word == tokenRequired, problem
}

func (d *decoder) instant(field string) (time.Time, *Problem) {
	const what = "a time such as 2026-01-02T03:04:05Z"
	raw, problem := d.text(field, what)
	if problem != nil {
		return time.Time{}, problem
	}
	t, err := time.Parse(time.RFC3339, raw)
	if err != nil || t.Year() < 2000 || t.Year() > 9999 {
		return time.Time{}, badInput(InvalidField, field, "must be "+what)
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

func (d *decoder) duration(field string) (time.Duration, *Problem) {
	const what = "a duration such as 15m"
	raw, problem := d.text(field, what)
	if problem != nil {
		return 0, problem
	}
	t, err := time.ParseDuration(raw)
	if err != nil {
		return 0, badInput(InvalidField, field, "must be "+what)
	}
	return t, nil
}
