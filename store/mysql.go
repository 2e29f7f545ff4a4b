package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// Session settings. A writer waits one second for a lock and is dropped after five silent ones, so that a stuck client
// cannot keep a hot ledger row; it must leave the pool before the server drops it.
const (
	connMaxLifetime = 3 * time.Minute
	writerMaxIdle   = 3 * time.Second
	readerMaxIdle   = 45 * time.Second

	strictMode = "'STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
)

var (
	writerSession = map[string]string{"innodb_lock_wait_timeout": "1", "wait_timeout": "5"}
	readerSession = map[string]string{"wait_timeout": "60"}
)

func mysqlDialect() *dialect {
	return &dialect{
		name:  MySQL,
		begin: "START TRANSACTION",
		// WITH CONSISTENT SNAPSHOT does nothing below REPEATABLE READ.
		beginSnapshot: []string{
			"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			"START TRANSACTION WITH CONSISTENT SNAPSHOT",
		},
		patience: "SET innodb_lock_wait_timeout = ?",
		classify: classifyMySQL,
		// A deadlock at COMMIT is how clusters refuse a write set. No other answer is known to mean: rolled back.
		rolledBack: func(err error) bool { return classifyMySQL(err) == errDeadlock },
		open:       openMySQL,
		newClock:   func(func() time.Time) clock { return new(serverClock) },
		maxBytes:   mysqlMaxBytes,
		migrate:    migrateWith(goose.DialectMySQL),
		judge:      judgeMySQL,
	}
}

func openMySQL(cfg Config) (p pools, err error) {
	for _, one := range []struct {
		pool      **sql.DB
		size      int
		timeoutMs int
		session   map[string]string
		maxIdle   time.Duration
	}{
		{&p.write, cfg.MaxWriters, cfg.WriteTimeoutMs, writerSession, writerMaxIdle},
		{&p.settling, cfg.SettleWriters, cfg.WriteTimeoutMs, writerSession, writerMaxIdle},
		{&p.read, cfg.MaxReaders, cfg.ReadTimeoutMs, readerSession, readerMaxIdle},
	} {
		db, err := mysqlPool(cfg, one.timeoutMs, one.session)
		if err != nil {
			return pools{}, errors.Join(err, p.close())
		}
		db.SetMaxOpenConns(one.size)
		db.SetMaxIdleConns(one.size)
		db.SetConnMaxIdleTime(one.maxIdle)
		*one.pool = db
	}
	return p, nil
}

func mysqlPool(cfg Config, timeoutMs int, session map[string]string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("dsn: %w", err)
	}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	maps.Copy(c.Params, session)
	c.Params["sql_mode"] = strictMode
	// A zone with summer time would make an hour ambiguous.
	c.Params["time_zone"] = "'+00:00'"
	c.InterpolateParams = true
	c.ClientFoundRows = false
	c.MultiStatements = false
	c.ParseTime = false
	c.Timeout = ms(cfg.ConnectTimeoutMs)
	c.ReadTimeout = ms(timeoutMs)
	c.WriteTimeout = c.ReadTimeout
	c.Logger = &mysql.NopLogger{} // every error comes back to a caller
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("dsn: %w", err)
	}
	db := sql.OpenDB(readCommitted{connector})
	db.SetConnMaxLifetime(connMaxLifetime)
	return db, nil
}

// readCommitted sets the isolation level of each new connection by statement: the name of the variable differs between
// MySQL and MariaDB before 11.1.
type readCommitted struct{ driver.Connector }

func (c readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	exec, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the MySQL driver cannot run statements"), conn.Close())
	}
	if _, err := exec.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Error numbers of the servers.
const (
	erNull          = 1048
	erDuplicate     = 1062
	erPacketTooBig  = 1153
	erLockWait      = 1205
	erDeadlock      = 1213
	erOutOfRange    = 1264
	erTruncated     = 1265
	erBadTime       = 1292
	erBadCharacters = 1300
	erBadValue      = 1366
	erTooLong       = 1406
	erNoPartition   = 1526
	erBigIntRange   = 1690
	erCheck         = 3819
	erCheckMariaDB  = 4025
)

func classifyMySQL(err error) errKind {
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return errData
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return errOther
	}
	switch e.Number {
	case erDuplicate:
		return errDuplicate
	case erLockWait:
		return errLockWait
	case erDeadlock:
		return errDeadlock
	case erNull, erPacketTooBig, erOutOfRange, erTruncated, erBadTime, erBadCharacters, erBadValue, erTooLong,
		erNoPartition, erBigIntRange, erCheck, erCheckMariaDB:
		return errData
	}
	return errOther
}

// mysqlMaxBytes is a quarter of the largest packet: placeholders grow when bytes in them are escaped.
func mysqlMaxBytes(ctx context.Context, db *sql.DB) (int, error) {
	var server int
	if err := db.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&server); err != nil {
		return 0, fmt.Errorf("read max_allowed_packet: %w", err)
	}
	const client = 64 << 20 // the driver's own limit
	return min(server, client) / 4, nil
}

// migrateWith runs a folder's migrations through goose.
func migrateWith(d goose.Dialect) func(context.Context, *sql.DB, fs.FS) error {
	return func(ctx context.Context, db *sql.DB, folder fs.FS) error {
		provider, err := goose.NewProvider(d, db, folder, goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		_, err = provider.Up(ctx)
		return err
	}
}
