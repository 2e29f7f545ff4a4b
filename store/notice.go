package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// ClaimNotices takes at most limit (and at most 500) notices, oldest first, that nobody has claimed for olderThan; no
// other claimer gets them for that long. Delete them once the broker has them.
func (db *DB) ClaimNotices(ctx context.Context, olderThan time.Duration, limit int) (claimed []sale.Notice, err error) {
	err = db.writing(ctx, func(t *txn) error {
		claimed, err = collect(ctx, t, scanNotice, db.sql.eventWaiting, db.ago(olderThan), min(limit, maxRows))
		if err != nil || len(claimed) == 0 {
			return err
		}
		arg := []any{millis(db.clock.now())}
		for _, n := range claimed {
			arg = append(arg, n.Seq)
		}
		_, err := t.exec(ctx, inList(db.sql.eventClaim, len(claimed)), arg...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim notices: %w", err)
	}
	return claimed, nil
}

func scanNotice(rows *sql.Rows) (n sale.Notice, err error) {
	var body []byte
	if err := rows.Scan(&n.Seq, &n.Topic, &n.Payment, &body); err != nil {
		return n, err
	}
	if err := json.Unmarshal(body, &n.Orders); err != nil {
		return n, fmt.Errorf("notice %d: %w", n.Seq, err)
	}
	return n, nil
}

// DeleteNotices forgets notices that the broker has; unknown ones are ignored.
func (db *DB) DeleteNotices(ctx context.Context, seqs []int64) error {
	for _, part := range parts(seqs, maxRows) {
		err := db.writing(ctx, func(t *txn) error {
			_, err := t.exec(ctx, inList(db.sql.eventDelete, len(part)), asArgs(part)...)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete notices: %w", err)
		}
	}
	return nil
}

// newNotices tells of orders under a topic, in notices of at most 500 orders.
func newNotices(topic string, orders []sale.Order) []sale.Notice {
	var all []sale.Notice
	for _, part := range parts(orders, maxRows) {
		all = append(all, sale.Notice{Topic: topic, Orders: part})
	}
	return all
}

// insertNotices writes one row a notice, as many in a statement as it takes.
func (db *DB) insertNotices(ctx context.Context, t *txn, notices []sale.Notice) error {
	now := millis(db.clock.now())
	var values []any
	rows, size := 0, 0
	flush := func() error {
		if rows == 0 {
			return nil
		}
		_, err := t.exec(ctx, bulk(db.sql.eventInsert, rows), values...)
		values, rows, size = nil, 0, 0
		return err
	}
	for _, n := range notices {
		body, err := json.Marshal(n.Orders)
		if err != nil {
			return err
		}
		if rows == maxRows || size+len(body) > db.maxBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		values = append(values, n.Topic, n.Payment, body, now, 0)
		rows++
		size += rowOverheadBytes + len(body)
	}
	return flush()
}
