package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteMaxBytes bounds one statement; SQLite itself takes a gigabyte.
const sqliteMaxBytes = 4 << 20

func sqliteDialect() *dialect {
	return &dialect{
		name: SQLite,
		// A deferred transaction would find out at its first write that somebody else was faster.
		begin:         "BEGIN IMMEDIATE",
		beginSnapshot: []string{"BEGIN DEFERRED"},
		classify:      classifySQLite,
		rolledBack:    func(error) bool { return false },
		open:          openSQLite,
		newClock:      func(now func() time.Time) clock { return hostClock{read: now} },
		maxBytes:      func(context.Context, *sql.DB) (int, error) { return sqliteMaxBytes, nil },
		migrate:       migrateWith(goose.DialectSQLite3),
		judge:         judgeSQLite,
	}
}

func openSQLite(cfg Config) (pools, error) {
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o755); err != nil {
		return pools{}, fmt.Errorf("path: %w", err)
	}
	write, err := sql.Open("sqlite", sqliteDSN(cfg))
	if err != nil {
		return pools{}, err
	}
	// SQLite has one writer anyway: queueing for it here is fair, and cheaper than polling the file's lock.
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", sqliteDSN(cfg, "query_only(1)"))
	if err != nil {
		return pools{}, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(cfg.MaxReaders)
	read.SetMaxIdleConns(cfg.MaxReaders)
	return pools{write: write, read: read, settling: write}, nil
}

func sqliteDSN(cfg Config, pragmas ...string) string {
	values := url.Values{}
	for _, p := range append([]string{
		fmt.Sprintf("busy_timeout(%d)", cfg.BusyTimeoutMs), "journal_mode(WAL)", "synchronous(FULL)",
	}, pragmas...) {
		values.Add("_pragma", p)
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(cfg.Path)}).EscapedPath() + "?" + values.Encode()
}

func classifySQLite(err error) errKind {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return errOther
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return errDuplicate
	case sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL, sqlite3.SQLITE_CONSTRAINT_DATATYPE,
		sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return errData
	}
	const primary = 0xff // the extended code keeps the primary one in its low byte
	if e.Code()&primary == sqlite3.SQLITE_BUSY {
		return errLockWait
	}
	return errOther
}
