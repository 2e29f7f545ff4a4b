package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

const (
	maxWriteTries   = 5               // of a transaction that loses locks
	rollbackTimeout = 2 * time.Second // for a transaction whose caller may have given up already
)

// errUndecided says that COMMIT was sent and its outcome is not known.
var errUndecided = errors.New("the outcome of the commit is unknown")

// querier is a pool, a connection or a transaction to read from.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// txn is one transaction on a connection of its own. COMMIT is a statement here and not sql.Tx's method, because
// whether it was sent at all decides between "nothing happened" and "unknown".
type txn struct {
	*sql.Conn
	dialect *dialect
	open    bool
	discard bool // the connection must not serve anybody else
}

// begin starts a writing transaction: READ COMMITTED on MySQL, with SQLite's write lock held on SQLite.
func (db *DB) begin(ctx context.Context) (*txn, error) { return db.beginOn(ctx, db.write) }

func (db *DB) beginOn(ctx context.Context, pool *sql.DB) (*txn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &txn{Conn: conn, dialect: db.dialect}
	return t, t.start(ctx, db.dialect.begin)
}

// start closes the transaction itself when it fails.
func (t *txn) start(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := t.ExecContext(ctx, s); err != nil {
			// It is not known how far the server got.
			t.discard = true
			t.close()
			return err
		}
	}
	t.open = true
	return nil
}

// exec runs a statement and tells how many rows it changed.
func (t *txn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// commit ends the transaction. An error is errUndecided unless nothing can have been committed: then it is the reason.
func (t *txn) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := t.ExecContext(ctx, "COMMIT")
	if err == nil {
		t.open = false
		return nil
	}
	if t.dialect.rolledBack(err) {
		return err
	}
	t.discard = true
	return fmt.Errorf("%w: %w", errUndecided, err)
}

// close rolls back what was not committed and gives the connection back. A connection whose transaction may still be
// open is thrown away, since it would carry locks into somebody else's work.
func (t *txn) close() {
	if t.open {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		if _, err := t.ExecContext(ctx, "ROLLBACK"); err != nil {
			t.discard = true
		}
	}
	if t.discard {
		_ = t.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = t.Close()
}

// writing runs work in a transaction and commits it. When the database makes it give way, it runs again from the start,
// so work must set its results anew each time.
func (db *DB) writing(ctx context.Context, work func(*txn) error) error {
	return db.writingOn(ctx, db.write, work)
}

func (db *DB) writingOn(ctx context.Context, pool *sql.DB, work func(*txn) error) error {
	var err error
	for range maxWriteTries {
		if err = db.writeOnce(ctx, pool, work); err == nil {
			return nil
		}
		kind := db.dialect.classify(err)
		if errors.Is(err, errUndecided) || kind != errDeadlock && kind != errLockWait {
			return err
		}
	}
	return fmt.Errorf("gave way %d times: %w", maxWriteTries, err)
}

func (db *DB) writeOnce(ctx context.Context, pool *sql.DB, work func(*txn) error) error {
	t, err := db.beginOn(ctx, pool)
	if err != nil {
		return err
	}
	defer t.close()
	if err := work(t); err != nil {
		return err
	}
	return t.commit(ctx)
}
