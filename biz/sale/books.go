package sale

// Books is what the rows of one SKU say, beside what its ledger says.
type Books struct {
	Total      int64 `json:"total"`
	Promised   int64 `json:"promised"`
	LiveUnits  int64 `json:"live_units"`  // units of outbox rows that are not closed
	LiveOrders int64 `json:"live_orders"` // outbox rows that are not closed
	Orders     int64 `json:"orders"`      // order rows
	Missing    int64 `json:"missing"`     // live outbox rows without an order row: still QUEUED, or lost
	Strangers  int64 `json:"strangers"`   // order rows without an outbox row
	OverLimit  int64 `json:"over_limit"`  // buyers with more live units than their limit
}

// Agree tells whether the rows bear the ledger out. Missing orders may be on their way, so they do not count.
func (b Books) Agree() bool {
	return b.Promised == b.LiveUnits && b.Promised <= b.Total && b.Strangers == 0 && b.OverLimit == 0
}
