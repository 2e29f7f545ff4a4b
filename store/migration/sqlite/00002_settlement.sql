-- +goose Up
-- The tables and columns of the MySQL schema. SQLite does not enforce declared lengths, so CHECKs do.
ALTER TABLE ledger ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN laid_slots INTEGER NOT NULL DEFAULT 0;

CREATE TABLE payment (
    id       TEXT    NOT NULL PRIMARY KEY CHECK (length(CAST(id AS BLOB)) <= 128),
    order_id BLOB    NOT NULL CHECK (length(order_id) = 16),
    outcome  INTEGER NOT NULL,
    at       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX payment_order ON payment (order_id);

CREATE TABLE restock (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id    BLOB    NOT NULL UNIQUE CHECK (length(order_id) = 16),
    sku         TEXT    NOT NULL CHECK (length(CAST(sku AS BLOB)) <= 64),
    buyer       TEXT    NOT NULL CHECK (length(CAST(buyer AS BLOB)) <= 128),
    qty         INTEGER NOT NULL CHECK (qty BETWEEN 1 AND 2147483647),
    share       INTEGER NOT NULL CHECK (share BETWEEN -32768 AND 32767),
    taken       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    actor       TEXT    NOT NULL CHECK (length(CAST(actor AS BLOB)) <= 128),
    at          INTEGER NOT NULL,
    credited_at INTEGER
);
CREATE INDEX restock_open ON restock (credited_at, seq);
CREATE INDEX restock_sku ON restock (sku, credited_at, qty);

ALTER TABLE event ADD COLUMN payment TEXT NOT NULL DEFAULT '';

CREATE TABLE dead_letter (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id   TEXT    NOT NULL UNIQUE CHECK (length(CAST(message_id AS BLOB)) <= 128),
    sku          TEXT    NOT NULL DEFAULT '' CHECK (length(CAST(sku AS BLOB)) <= 64),
    order_id     BLOB    CHECK (order_id IS NULL OR length(order_id) = 16),
    error        TEXT    NOT NULL CHECK (length(CAST(error AS BLOB)) <= 1024),
    source       TEXT    NOT NULL CHECK (length(CAST(source AS BLOB)) <= 255),
    content_type TEXT    NOT NULL CHECK (length(CAST(content_type AS BLOB)) <= 255),
    body         BLOB    NOT NULL,
    state        TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    handled_at   INTEGER NOT NULL DEFAULT 0,
    handled_by   TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX dead_letter_order ON dead_letter (order_id);
CREATE INDEX dead_letter_state ON dead_letter (state, seq);

CREATE TABLE outbox_archive (
    seq          INTEGER PRIMARY KEY,
    id           BLOB    NOT NULL UNIQUE,
    sku          TEXT    NOT NULL,
    buyer        TEXT    NOT NULL,
    qty          INTEGER NOT NULL,
    share        INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    close_reason TEXT    NOT NULL
);
CREATE INDEX outbox_archive_sku ON outbox_archive (sku, seq);

CREATE TABLE closeout (
    sku    TEXT    NOT NULL PRIMARY KEY,
    report BLOB    NOT NULL,
    at     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE toggle (
    name       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    reason     TEXT    NOT NULL CHECK (length(CAST(reason AS BLOB)) <= 1024),
    actor      TEXT    NOT NULL CHECK (length(CAST(actor AS BLOB)) <= 128),
    until      INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (name, scope)
) WITHOUT ROWID;

CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL CHECK (length(CAST(actor AS BLOB)) <= 128),
    action TEXT    NOT NULL,
    target TEXT    NOT NULL CHECK (length(CAST(target AS BLOB)) <= 255),
    detail TEXT    NOT NULL CHECK (length(CAST(detail AS BLOB)) <= 4096)
);
CREATE INDEX audit_at ON audit (at);

-- +goose Down
DROP TABLE audit;
DROP TABLE toggle;
DROP TABLE closeout;
DROP TABLE outbox_archive;
DROP TABLE dead_letter;
ALTER TABLE event DROP COLUMN payment;
DROP TABLE restock;
DROP TABLE payment;
ALTER TABLE ledger DROP COLUMN laid_slots;
ALTER TABLE ledger DROP COLUMN changes;
