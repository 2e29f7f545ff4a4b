package store

import (
	"context"
	"database/sql"
	"time"

	"stockade/biz/sale"
)

// Bounds of a diagnosis.
const (
	diagnoseStep  = 2 * time.Second // one question
	diagnosePings = 5
	// A promise takes four round trips, and everybody behind it waits for them.
	pingWarn = 10 * time.Millisecond
	pingFail = 100 * time.Millisecond

	maxWaitingCount = 10_001 // rows counted; more look like so many
)

// vitals are what a database says of itself.
type vitals struct {
	pings        []time.Duration
	ahead        time.Duration // of its clock
	settings     map[string]string
	connected    map[string]string // Threads_connected, where there is a server
	opened, pool int               // connections of this node: now, and at most
	schema, want int64
	outbox       int
	outboxAge    time.Duration // of the oldest row that waits
	dead         int
}

// Diagnose checks the database: whether it answers, whether what a promise rests on is set, and what waits in it. A
// database that does not answer is asked no more.
func (db *DB) Diagnose(ctx context.Context) []sale.Finding {
	v, err := db.examine(ctx)
	if err != nil {
		return []sale.Finding{sale.CheckMySQLPing.Fail(db.dialect.name, "no answer: "+err.Error(),
			"start the database, or correct store.dsn and what the user may do")}
	}
	return append(db.dialect.judge(v), v.judge(db.dialect.name)...)
}

// examine asks for everything. An error says which question was not answered.
func (db *DB) examine(ctx context.Context) (v vitals, err error) {
	step := func(ask func(ctx context.Context) error) {
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, diagnoseStep)
		defer cancel()
		err = ask(ctx)
	}
	step(func(ctx context.Context) error { return db.examineTime(ctx, &v) })
	for _, one := range []struct {
		query string
		into  *map[string]string
	}{{db.sql.serverSettings, &v.settings}, {db.sql.serverConnected, &v.connected}} {
		step(func(ctx context.Context) (err error) {
			*one.into, err = namedValues(ctx, db.read, one.query)
			return err
		})
	}
	step(func(ctx context.Context) (err error) {
		if v.want, err = newestMigration(db.dialect.name); err != nil {
			return err
		}
		return db.read.QueryRowContext(ctx, db.sql.schemaVersion).Scan(&v.schema)
	})
	step(func(ctx context.Context) error {
		var oldest int64
		err := db.read.QueryRowContext(ctx, db.sql.outboxWaiting, maxWaitingCount).Scan(&v.outbox, &oldest)
		if v.outbox > 0 {
			v.outboxAge = db.clock.now().Sub(fromMillis(oldest))
		}
		return err
	})
	step(func(ctx context.Context) error {
		return db.read.QueryRowContext(ctx, db.sql.deadWaiting, string(sale.DeadOpen), maxWaitingCount).Scan(&v.dead)
	})
	for _, pool := range []*sql.DB{db.write, db.settling, db.read} {
		v.opened += pool.Stats().OpenConnections
		v.pool += pool.Stats().MaxOpenConnections
	}
	return v, err
}

// examineTime asks one connection of the writing pool: the wait for a connection is not the server's delay.
func (db *DB) examineTime(ctx context.Context, v *vitals) error {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for range diagnosePings {
		var server int64
		asked := time.Now()
		if err := conn.QueryRowContext(ctx, db.sql.ping).Scan(&server); err != nil {
			return err
		}
		took := time.Since(asked)
		v.pings = append(v.pings, took)
		v.ahead = time.UnixMilli(server).Sub(asked.Add(took / 2))
	}
	return nil
}

// namedValues reads rows of a name and a value.
func namedValues(ctx context.Context, q querier, query string) (map[string]string, error) {
	rows, err := collect(ctx, q, func(rows *sql.Rows) (pair [2]string, err error) {
		return pair, rows.Scan(&pair[0], &pair[1])
	}, query)
	values := map[string]string{}
	for _, pair := range rows {
		values[pair[0]] = pair[1]
	}
	return values, err
}
