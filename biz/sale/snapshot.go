package sale

import "context"

// LedgerChange is what a reshare changes about its SKU when it begins. Zero fields change nothing.
type LedgerChange struct {
	AddTotal int64 // units, may be negative
	Slots    int   // another slot count
	Mode     Mode  // another way of purchases
}

// Snapshot is the truth a reshare lays out. It holds a connection: Close it.
type Snapshot interface {
	// Listing is the SKU with its ledger as just raised: Epoch is the reshare's, LiveEpoch is still the old one.
	Listing() Listing
	// Holdings pages through all outbox rows of the SKU, live and closed, by Seq.
	Holdings(ctx context.Context, afterSeq int64, limit int) ([]Holding, error)
	// Decided looks ids up; ids that have no outbox row are missing from the map.
	Decided(ctx context.Context, ids []OrderID) (map[OrderID]Holding, error)
	Close() error
}
