// Package store keeps the truth in MySQL (or MariaDB), or, embedded, in a SQLite file: SKUs with their ledgers, the
// promise that decides purchases, the outbox, orders and notices. Both databases run the same flow over SQL texts of
// their own, sql/mysql and sql/sqlite, and pass the same suite, storetest.
//
// Lock order everywhere: orders, ledger, outbox.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// Bounds of what one statement carries.
const (
	maxRows          = 500 // rows or ids: more made commits no faster in the design's measurements
	rowOverheadBytes = 256 // numbers and punctuation of one row, beside its texts
	pingEvery        = 2 * time.Second
)

// Options are what Open needs beside the configuration. The zero value works.
type Options struct {
	// Node names this process in the outbox rows that it writes or claims; at most 128 bytes.
	Node string
	// Now is the clock of an embedded database; default time.Now. A server has its own.
	Now func() time.Time
	// Faults is asked before each COMMIT that tests break; default sale.NoFaults.
	Faults sale.Faults
}

// DB is one database. All methods are safe for concurrent use.
type DB struct {
	cfg     Config
	dialect *dialect
	sql     *statements
	pools
	clock    clock
	faults   sale.Faults
	node     string
	maxBytes int // of one statement

	stop    context.CancelFunc
	stopped chan struct{} // closed when the pinger has ended
}

// Open connects to a database whose schema is up to date (see Migrate), and starts a goroutine that reads its clock
// every 2 s until Close.
func Open(ctx context.Context, cfg Config, opts Options) (*DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := dialectOf(cfg.Dialect)
	texts, err := loadStatements(sqlFiles, d.name)
	if err != nil {
		return nil, err
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Faults == nil {
		opts.Faults = sale.NoFaults{}
	}
	p, err := d.open(cfg)
	if err != nil {
		return nil, err
	}
	db := &DB{
		cfg: cfg, dialect: d, sql: texts, pools: p,
		clock: d.newClock(opts.Now), faults: opts.Faults, node: opts.Node, stopped: make(chan struct{}),
	}
	if err := db.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", d.name, err), db.pools.close())
	}
	pinging, stop := context.WithCancel(context.Background())
	db.stop = stop
	go db.keepTime(pinging)
	return db, nil
}

func (db *DB) ready(ctx context.Context) error {
	if err := db.Ping(ctx); err != nil {
		return err
	}
	var err error
	if db.maxBytes, err = db.dialect.maxBytes(ctx, db.write); err != nil {
		return err
	}
	return db.checkSchema(ctx)
}

// Ping asks the writing pool for the server's time; an error means that nothing can be promised now.
func (db *DB) Ping(ctx context.Context) error {
	// The wait for a connection must not count as the server's delay.
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var ms int64
	asked := time.Now()
	if err := conn.QueryRowContext(ctx, db.sql.ping).Scan(&ms); err != nil {
		return err
	}
	db.clock.sampled(time.UnixMilli(ms), asked)
	return nil
}

// keepTime pings until ctx ends. A failed ping leaves the clock running from the last good one.
func (db *DB) keepTime(ctx context.Context) {
	defer close(db.stopped)
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			once, cancel := context.WithTimeout(ctx, pingEvery)
			_ = db.Ping(once)
			cancel()
		}
	}
}

// Close waits for the pinger and closes all pools. Transactions of callers must have ended.
func (db *DB) Close() error {
	db.stop()
	<-db.stopped
	return db.pools.close()
}
