package store

import (
	"context"
	"database/sql"
	"fmt"

	"stockade/biz/sale"
)

// Bounds of a dead letter's texts, as the columns declare them, in bytes.
const (
	maxMessageID   = 128
	maxDeadError   = 1024
	maxDeadSource  = 255 // and content type
	maxActor       = 128
	maxDeadListing = 200
)

// RecordDead keeps a dead letter by its message id and returns its seq. One that is there stays as it is, unless it was
// REPLAYED: then it is OPEN again, with one more attempt and the newer text. Texts that are too long are cut, and a SKU
// that is no SKU's id is left out, because the message that nobody can read is the one that must not be lost.
// *sale.InputError for a message id that is not of 1 to 128 bytes.
func (db *DB) RecordDead(ctx context.Context, d sale.DeadLetter) (seq int64, err error) {
	if d.MessageID == "" || len(d.MessageID) > maxMessageID {
		return 0, sale.BadInput("message_id", fmt.Sprintf("must be of 1 to %d bytes", maxMessageID))
	}
	var order any
	if d.Order != nil {
		order = d.Order[:]
	}
	if !sale.ValidSKUID(d.SKU) {
		d.SKU = ""
	}
	if d.Body == nil {
		d.Body = []byte{}
	}
	text, source, kind := cut(d.Error, maxDeadError), cut(d.Source, maxDeadSource), cut(d.ContentType, maxDeadSource)
	err = db.writing(ctx, func(t *txn) error {
		_, err := t.exec(ctx, db.sql.deadInsert, d.MessageID, d.SKU, order, text, source, kind, d.Body,
			sale.DeadOpen, millis(db.clock.now()))
		return err
	})
	if db.dialect.classify(err) == errDuplicate {
		err = db.writing(ctx, func(t *txn) error {
			_, err := t.exec(ctx, db.sql.deadReopen, sale.DeadOpen, text, source, kind, d.Body, d.MessageID,
				sale.DeadReplayed)
			return err
		})
	}
	if err == nil {
		err = scanOne(ctx, db.write, []any{&seq}, db.sql.deadSeq, d.MessageID)
	}
	if err != nil {
		return 0, fmt.Errorf("record dead letter: %w", err)
	}
	return seq, nil
}

// cut shortens a text to n bytes.
func cut(s string, n int) string { return s[:min(len(s), n)] }

// DeadLetters lists a page of at most 200, by seq, without bodies.
func (db *DB) DeadLetters(ctx context.Context, f sale.DeadFilter) ([]sale.DeadLetter, error) {
	return collect(ctx, db.read, scanDead, db.sql.deadList,
		f.After, f.State, f.State, f.SKU, f.SKU, min(f.Limit, maxDeadListing))
}

// DeadLetter reads one with its body; sale.ErrNotFound.
func (db *DB) DeadLetter(ctx context.Context, seq int64) (sale.DeadLetter, error) {
	found, err := collect(ctx, db.read, scanDead, db.sql.deadBySeq, seq)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("dead letter %d: %w", seq, sale.ErrNotFound)
	}
	if err != nil {
		return sale.DeadLetter{}, err
	}
	return found[0], nil
}

func scanDead(rows *sql.Rows) (d sale.DeadLetter, err error) {
	var order []byte
	var at, handled int64
	err = rows.Scan(&d.Seq, &d.MessageID, &d.SKU, &order, &d.Error, &d.Source, &d.ContentType, &d.Body, &d.State,
		&d.Attempts, &at, &handled, &d.HandledBy)
	if err != nil {
		return d, err
	}
	d.At, d.HandledAt = fromMillis(at), fromMillis(handled)
	if order != nil {
		id, err := orderID(order)
		d.Order = &id
		return d, err
	}
	return d, nil
}

// HandleDead moves one from OPEN to REPLAYED, COMPENSATED or DROPPED, on the word of an actor of 1 to 128 bytes. An order
// that was REPLAYED is looked after like one that was just sent. sale.ErrConflict when the letter is not OPEN,
// sale.ErrNotFound, *sale.InputError.
func (db *DB) HandleDead(ctx context.Context, seq int64, to sale.DeadState, actor string) error {
	if to != sale.DeadReplayed && to != sale.DeadCompensated && to != sale.DeadDropped {
		return sale.BadInput("state", fmt.Sprintf("must be %s, %s or %s", sale.DeadReplayed, sale.DeadCompensated, sale.DeadDropped))
	}
	if err := checkActor(actor); err != nil {
		return err
	}
	return db.writing(ctx, func(t *txn) error {
		n, err := t.exec(ctx, db.sql.deadHandle, to, millis(db.clock.now()), actor, seq, sale.DeadOpen)
		if err == nil && n > 0 && to == sale.DeadReplayed {
			return db.watchReplayed(ctx, t, seq)
		}
		if err != nil || n > 0 {
			return err
		}
		found, err := collect(ctx, t, scanDead, db.sql.deadBySeq, seq)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("dead letter %d: %w", seq, sale.ErrNotFound)
		}
		return fmt.Errorf("dead letter %d is %s: %w", seq, found[0].State, sale.ErrConflict)
	})
}

// watchReplayed makes the outbox row of a replayed letter's order SENT as of now. A recheck made it DONE when it found the
// letter OPEN, and nobody else would notice that the replay got lost too.
func (db *DB) watchReplayed(ctx context.Context, t *txn, letter int64) error {
	done, err := seqs(ctx, t, db.sql.deadOutbox, letter)
	if err != nil || len(done) == 0 {
		return err
	}
	written, err := seqs(ctx, t, inList(db.sql.outboxWritten, len(done)), asArgs(done)...)
	if err != nil || len(written) > 0 {
		return err
	}
	_, err = t.exec(ctx, inList(db.sql.outboxResent, len(done)), append([]any{millis(db.clock.now())}, asArgs(done)...)...)
	return err
}

func checkActor(actor string) error {
	if actor == "" || len(actor) > maxActor {
		return sale.BadInput("actor", fmt.Sprintf("must be of 1 to %d bytes", maxActor))
	}
	return nil
}
