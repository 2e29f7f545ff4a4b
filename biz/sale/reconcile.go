package sale

// DiscrepancyKind is a way in which an order's rows do not agree.
type DiscrepancyKind string

// The kinds of discrepancies.
const (
	OrderMissing  DiscrepancyKind = "ORDER_MISSING"  // the outbox row is DONE, there is no order row
	OrderStranger DiscrepancyKind = "ORDER_STRANGER" // there is an order row and no outbox row
	ClosedDiffers DiscrepancyKind = "CLOSED_DIFFERS" // one of the rows is closed, the other is not
	FieldsDiffer  DiscrepancyKind = "FIELDS_DIFFER"  // the rows name another SKU, buyer or quantity
)

// Discrepancy is one order whose rows do not agree.
type Discrepancy struct {
	Kind     DiscrepancyKind `json:"kind"`
	Order    OrderID         `json:"order_id"`
	Buyer    string          `json:"buyer"`
	Quantity int64           `json:"quantity"`
	Outbox   string          `json:"outbox,omitempty"` // NEW, SENT or DONE, and CLOSED behind it; empty: no row
	Row      OrderState      `json:"order,omitempty"`  // of the order row; empty: no row
	// Correction says what a fix does; empty when only a person can decide.
	Correction string `json:"correction,omitempty"`
}

// LedgerCheck compares a ledger with the rows that bear it out, read in one snapshot.
type LedgerCheck struct {
	Promised  int64 `json:"promised"`   // as the ledger says
	LiveUnits int64 `json:"live_units"` // Σ qty of outbox rows that are not closed
	Sold      int64 `json:"sold"`       // as the ledger says
	PaidUnits int64 `json:"paid_units"` // Σ qty of PAID order rows
}

// Agrees tells whether the ledger says what the rows say.
func (c LedgerCheck) Agrees() bool { return c.Promised == c.LiveUnits && c.Sold == c.PaidUnits }

// Unfinished counts what keeps a SKU from being closed out.
type Unfinished struct {
	Queued     int64 `json:"queued"`     // accepted orders without an order row
	Unpaid     int64 `json:"unpaid"`     // CREATED orders
	Uncredited int64 `json:"uncredited"` // closed orders whose units the gate has not got back
	DeadOpen   int64 `json:"dead_open"`  // dead letters of the SKU that nobody has dealt with
	Differ     int64 `json:"differ"`     // orders of which only one row is closed
}

// None tells whether nothing is left to wait for.
func (u Unfinished) None() bool { return u == Unfinished{} }

// OrderCursor is a position in all order rows, which lie in the order of buyer and id. The zero value is before all.
type OrderCursor struct {
	Buyer string
	Order OrderID
}
