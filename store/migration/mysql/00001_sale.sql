-- +goose Up
-- Names are VARBINARY because every *_bin collation pads: 'a' and 'a ' would be one buyer. Times are Unix
-- milliseconds UTC, 0 where there is none.

-- state is where the SKU stands in its life; opens_at and closes_at 0 mean no bound.
CREATE TABLE sku (
    id             VARBINARY(64) NOT NULL PRIMARY KEY,
    state          VARBINARY(16) NOT NULL,
    opens_at       BIGINT        NOT NULL,
    closes_at      BIGINT        NOT NULL,
    buyer_limit    BIGINT        NOT NULL,
    payment_window BIGINT        NOT NULL,
    slots          INT           NOT NULL,
    reserve_pct    INT           NOT NULL,
    created_at     BIGINT        NOT NULL
);

CREATE TABLE ledger (
    sku         VARBINARY(64)  NOT NULL PRIMARY KEY,
    epoch       BIGINT         NOT NULL,
    live_epoch  BIGINT         NOT NULL,
    laid_epoch  BIGINT         NOT NULL,
    laid_gate   VARBINARY(512) NOT NULL,
    mode        VARBINARY(16)  NOT NULL,
    state       VARBINARY(16)  NOT NULL,
    progress_at BIGINT         NOT NULL,
    total       BIGINT         NOT NULL,
    promised    BIGINT         NOT NULL,
    sold        BIGINT         NOT NULL,
    CONSTRAINT ledger_promised CHECK (promised BETWEEN 0 AND total),
    CONSTRAINT ledger_sold CHECK (sold BETWEEN 0 AND promised),
    CONSTRAINT ledger_epoch CHECK (live_epoch BETWEEN 0 AND epoch)
);

-- share is the slot, or -1 for the reserve; epoch and token name the take; state is 0 NEW, 1 SENT, 2 DONE. sent_at of
-- a NEW row is when it was written or last claimed.
CREATE TABLE outbox (
    seq          BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id           BINARY(16)     NOT NULL,
    sku          VARBINARY(64)  NOT NULL,
    buyer        VARBINARY(128) NOT NULL,
    qty          INT            NOT NULL,
    share        SMALLINT       NOT NULL,
    epoch        BIGINT         NOT NULL,
    token        BIGINT         NOT NULL,
    state        TINYINT        NOT NULL,
    attempts     INT            NOT NULL,
    node         VARBINARY(128) NOT NULL,
    created_at   BIGINT         NOT NULL,
    sent_at      BIGINT         NOT NULL,
    expires_at   BIGINT         NOT NULL,
    closed_at    BIGINT         NULL,
    close_reason VARBINARY(32)  NOT NULL DEFAULT '',
    UNIQUE KEY outbox_id (id),
    KEY outbox_buyer (sku, buyer, closed_at, qty),
    KEY outbox_sweep (state, sent_at),
    CONSTRAINT outbox_qty CHECK (qty > 0)
);

-- state is 1 CREATED, 2 PAID, 3 CLOSED.
CREATE TABLE orders (
    buyer       VARBINARY(128) NOT NULL,
    id          BINARY(16)     NOT NULL,
    sku         VARBINARY(64)  NOT NULL,
    qty         INT            NOT NULL,
    state       TINYINT        NOT NULL,
    reason      VARBINARY(32)  NOT NULL DEFAULT '',
    accepted_at BIGINT         NOT NULL,
    expires_at  BIGINT         NOT NULL,
    created_at  BIGINT         NOT NULL,
    PRIMARY KEY (buyer, id),
    KEY orders_expiry (state, expires_at),
    CONSTRAINT orders_qty CHECK (qty > 0)
) PARTITION BY KEY (buyer) PARTITIONS 16;

-- body is a JSON list of orders; claimed_at is 0 until a relay takes the row.
CREATE TABLE event (
    seq        BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    topic      VARBINARY(128) NOT NULL,
    body       MEDIUMBLOB     NOT NULL,
    created_at BIGINT         NOT NULL,
    claimed_at BIGINT         NOT NULL
);

-- +goose Down
DROP TABLE event;
DROP TABLE orders;
DROP TABLE outbox;
DROP TABLE ledger;
DROP TABLE sku;
