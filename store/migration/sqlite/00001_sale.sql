-- +goose Up
-- The tables and columns of the MySQL schema. SQLite does not enforce declared lengths, so CHECKs do.
CREATE TABLE sku (
    id             TEXT    NOT NULL PRIMARY KEY CHECK (length(CAST(id AS BLOB)) <= 64),
    state          TEXT    NOT NULL,
    opens_at       INTEGER NOT NULL,
    closes_at      INTEGER NOT NULL,
    buyer_limit    INTEGER NOT NULL,
    payment_window INTEGER NOT NULL,
    slots          INTEGER NOT NULL,
    reserve_pct    INTEGER NOT NULL,
    created_at     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE ledger (
    sku         TEXT    NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    live_epoch  INTEGER NOT NULL,
    laid_epoch  INTEGER NOT NULL,
    laid_gate   TEXT    NOT NULL,
    mode        TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    progress_at INTEGER NOT NULL,
    total       INTEGER NOT NULL,
    promised    INTEGER NOT NULL,
    sold        INTEGER NOT NULL,
    CONSTRAINT ledger_promised CHECK (promised BETWEEN 0 AND total),
    CONSTRAINT ledger_sold CHECK (sold BETWEEN 0 AND promised),
    CONSTRAINT ledger_epoch CHECK (live_epoch BETWEEN 0 AND epoch)
) WITHOUT ROWID;

-- AUTOINCREMENT, because a seq must never be given out twice.
CREATE TABLE outbox (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    sku          TEXT    NOT NULL CHECK (length(CAST(sku AS BLOB)) <= 64),
    buyer        TEXT    NOT NULL CHECK (length(CAST(buyer AS BLOB)) <= 128),
    qty          INTEGER NOT NULL CHECK (qty BETWEEN 1 AND 2147483647),
    share        INTEGER NOT NULL CHECK (share BETWEEN -32768 AND 32767),
    epoch        INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    node         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    sent_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    close_reason TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX outbox_buyer ON outbox (sku, buyer, closed_at, qty);
CREATE INDEX outbox_sweep ON outbox (state, sent_at);

CREATE TABLE orders (
    buyer       TEXT    NOT NULL CHECK (length(CAST(buyer AS BLOB)) <= 128),
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    sku         TEXT    NOT NULL CHECK (length(CAST(sku AS BLOB)) <= 64),
    qty         INTEGER NOT NULL CHECK (qty BETWEEN 1 AND 2147483647),
    state       INTEGER NOT NULL,
    reason      TEXT    NOT NULL DEFAULT '',
    accepted_at INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (buyer, id)
) WITHOUT ROWID;
CREATE INDEX orders_expiry ON orders (state, expires_at);

CREATE TABLE event (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    topic      TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE event;
DROP TABLE orders;
DROP TABLE outbox;
DROP TABLE ledger;
DROP TABLE sku;
