package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"time"

	"stockade/biz/sale"
)

// errKind sorts database errors by what the caller can do about them.
type errKind uint8

const (
	errOther     errKind = iota // no connection, no permission, no table: nothing to do but report it
	errDuplicate                // a unique key is taken
	errData                     // the row's data is refused, or too large
	errLockWait                 // somebody holds the row for too long
	errDeadlock                 // the database chose this transaction to give way
)

// dialect is all that differs between databases beside the SQL texts.
type dialect struct {
	name          string // folder of sql/ and migration/
	begin         string // starts a writing transaction
	beginSnapshot []string
	// patience makes a writing connection wait longer for locks; "" where all waits are alike.
	patience string
	classify func(error) errKind
	// rolledBack tells of an error at COMMIT whether the database said that nothing was committed.
	rolledBack func(error) bool
	open       func(Config) (pools, error)
	// newClock returns the database's clock; its samples come from the ping statement.
	newClock func(now func() time.Time) clock
	// maxBytes asks how large one statement may be.
	maxBytes func(ctx context.Context, db *sql.DB) (int, error)
	migrate  func(ctx context.Context, db *sql.DB, folder fs.FS) error
	// judge makes findings of what this kind of database has alone.
	judge func(v vitals) []sale.Finding
}

// pools are the connections of one database. settling serves what happens to orders after they were accepted, so that
// thousands of orders that expire together cannot keep purchases from a connection; it is write itself where the
// database has one writer.
type pools struct{ write, read, settling *sql.DB }

// close closes them all; the pools that are not open yet are nil.
func (p pools) close() error {
	var errs []error
	for _, one := range []*sql.DB{p.write, p.read, p.settling} {
		if one != nil {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

func dialectOf(name string) *dialect {
	if name == MySQL {
		return mysqlDialect()
	}
	return sqliteDialect()
}
