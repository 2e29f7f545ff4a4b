package store

import (
	"context"

	"stockade/biz/sale"
)

// snapshot is a sale.Snapshot: a consistent read of the outbox on a connection of its own, from the moment
// its ledger row was held. It is for one goroutine.
type snapshot struct {
	db      *DB
	t       *txn
	listing sale.Listing
}

// open starts the snapshot and reads once: SQLite, and databases that take "consistent snapshot" for a hint, fix what a
// transaction sees at its first read.
func (s *snapshot) open(ctx context.Context) error {
	if err := s.t.start(ctx, s.db.dialect.beginSnapshot...); err != nil {
		return err
	}
	_, err := s.db.listing(ctx, s.t, s.listing.ID)
	return err
}

// Listing is the SKU with its ledger as just raised: Epoch is the reshare's, LiveEpoch is still the old one.
func (s *snapshot) Listing() sale.Listing { return s.listing }

// Holdings pages through all outbox rows of the SKU, live and closed, by Seq; at most limit rows.
func (s *snapshot) Holdings(ctx context.Context, afterSeq int64, limit int) ([]sale.Holding, error) {
	rs, err := records(ctx, s.t, s.db.sql.outboxPage, s.listing.ID, afterSeq, limit)
	if err != nil {
		return nil, err
	}
	all := make([]sale.Holding, len(rs))
	for i, r := range rs {
		all[i] = r.holding()
	}
	return all, nil
}

// Decided looks ids up; ids that have no outbox row of the SKU are missing from the map.
func (s *snapshot) Decided(ctx context.Context, ids []sale.OrderID) (map[sale.OrderID]sale.Holding, error) {
	return s.db.holdingsByID(ctx, s.t, s.listing.ID, ids)
}

// Close ends the snapshot and gives its connection back.
func (s *snapshot) Close() error {
	s.t.close()
	return nil
}
