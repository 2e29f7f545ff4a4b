package sale

// Books is what the rows of one SKU say, beside what its ledger says. Outbox rows count as long as they exist, in the
// archive too.
type Books struct {
	Total      int64 `json:"total"`
	Promised   int64 `json:"promised"`
	Sold       int64 `json:"sold"`
	LiveUnits  int64 `json:"live_units"`  // units of outbox rows that are not closed
	LiveOrders int64 `json:"live_orders"` // outbox rows that are not closed
	PaidUnits  int64 `json:"paid_units"`  // units of PAID order rows
	Orders     int64 `json:"orders"`      // order rows: Unpaid, Paid and Closed together
	Unpaid     int64 `json:"unpaid"`      // CREATED order rows
	Paid       int64 `json:"paid"`        // PAID order rows
	Closed     int64 `json:"closed"`      // CLOSED order rows
	Missing    int64 `json:"missing"`     // live outbox rows without an order row: still QUEUED, or lost
	Uncredited int64 `json:"uncredited"`  // units of closed orders that the gate has not got back
	Strangers  int64 `json:"strangers"`   // order rows without an outbox row
	OverLimit  int64 `json:"over_limit"`  // buyers with more live units than their limit; archived rows do not count
}

// Agree tells whether the rows bear the ledger out. Missing orders and uncredited units may be on their way, so they do
// not count.
func (b Books) Agree() bool {
	return b.Promised == b.LiveUnits && b.Promised <= b.Total && b.Sold == b.PaidUnits && b.Sold <= b.Promised &&
		b.Strangers == 0 && b.OverLimit == 0
}
