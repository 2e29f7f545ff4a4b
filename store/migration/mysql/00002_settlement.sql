-- +goose Up
-- changes only grows: units promised plus units closed. laid_slots is how many slots the gate may hold keys of.
ALTER TABLE ledger
    ADD COLUMN changes    BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN laid_slots INT    NOT NULL DEFAULT 0;

-- outcome is 1 taken, 2 refund required.
CREATE TABLE payment (
    id       VARBINARY(128) NOT NULL PRIMARY KEY,
    order_id BINARY(16)     NOT NULL,
    outcome  TINYINT        NOT NULL,
    at       BIGINT         NOT NULL,
    KEY payment_order (order_id)
);

-- A row for each closed order whose units were promised. taken is the epoch of the take, epoch the ledger's when the
-- order was closed; credited_at is NULL until the gate has the units, or a later reshare has counted them.
CREATE TABLE restock (
    seq         BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_id    BINARY(16)     NOT NULL,
    sku         VARBINARY(64)  NOT NULL,
    buyer       VARBINARY(128) NOT NULL,
    qty         INT            NOT NULL,
    share       SMALLINT       NOT NULL,
    taken       BIGINT         NOT NULL,
    epoch       BIGINT         NOT NULL,
    reason      VARBINARY(32)  NOT NULL,
    actor       VARBINARY(128) NOT NULL,
    at          BIGINT         NOT NULL,
    credited_at BIGINT         NULL,
    UNIQUE KEY restock_order (order_id),
    KEY restock_open (credited_at, seq),
    KEY restock_sku (sku, credited_at, qty),
    CONSTRAINT restock_qty CHECK (qty > 0)
);

-- The provider's payment, of notices that are about one.
ALTER TABLE event ADD COLUMN payment VARBINARY(128) NOT NULL DEFAULT '';

-- order_id is NULL where the message cannot be read. handled_at is 0 while nobody has dealt with it.
CREATE TABLE dead_letter (
    seq          BIGINT          NOT NULL AUTO_INCREMENT PRIMARY KEY,
    message_id   VARBINARY(128)  NOT NULL,
    sku          VARBINARY(64)   NOT NULL DEFAULT '',
    order_id     BINARY(16)      NULL,
    error        VARBINARY(1024) NOT NULL,
    source       VARBINARY(255)  NOT NULL,
    content_type VARBINARY(255)  NOT NULL,
    body         MEDIUMBLOB      NOT NULL,
    state        VARBINARY(16)   NOT NULL,
    attempts     INT             NOT NULL,
    at           BIGINT          NOT NULL,
    handled_at   BIGINT          NOT NULL DEFAULT 0,
    handled_by   VARBINARY(128)  NOT NULL DEFAULT '',
    UNIQUE KEY dead_letter_message (message_id),
    KEY dead_letter_order (order_id),
    KEY dead_letter_state (state, seq)
);

-- Outbox rows of SKUs that are closed out, as they were.
CREATE TABLE outbox_archive (
    seq          BIGINT         NOT NULL PRIMARY KEY,
    id           BINARY(16)     NOT NULL,
    sku          VARBINARY(64)  NOT NULL,
    buyer        VARBINARY(128) NOT NULL,
    qty          INT            NOT NULL,
    share        SMALLINT       NOT NULL,
    epoch        BIGINT         NOT NULL,
    token        BIGINT         NOT NULL,
    created_at   BIGINT         NOT NULL,
    expires_at   BIGINT         NOT NULL,
    closed_at    BIGINT         NULL,
    close_reason VARBINARY(32)  NOT NULL,
    UNIQUE KEY outbox_archive_id (id),
    KEY outbox_archive_sku (sku, seq)
);

-- report is the JSON that the close-out compared and found in agreement.
CREATE TABLE closeout (
    sku    VARBINARY(64) NOT NULL PRIMARY KEY,
    report MEDIUMBLOB    NOT NULL,
    at     BIGINT        NOT NULL
);

-- scope is a SKU, or empty for all; until is 0 for no end.
CREATE TABLE toggle (
    name       VARBINARY(64)   NOT NULL,
    scope      VARBINARY(64)   NOT NULL,
    value      VARBINARY(64)   NOT NULL,
    reason     VARBINARY(1024) NOT NULL,
    actor      VARBINARY(128)  NOT NULL,
    until      BIGINT          NOT NULL,
    changed_at BIGINT          NOT NULL,
    PRIMARY KEY (name, scope)
);

CREATE TABLE audit (
    seq    BIGINT          NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at     BIGINT          NOT NULL,
    actor  VARBINARY(128)  NOT NULL,
    action VARBINARY(64)   NOT NULL,
    target VARBINARY(255)  NOT NULL,
    detail VARBINARY(4096) NOT NULL,
    KEY audit_at (at)
);

-- +goose Down
DROP TABLE audit;
DROP TABLE toggle;
DROP TABLE closeout;
DROP TABLE outbox_archive;
DROP TABLE dead_letter;
ALTER TABLE event DROP COLUMN payment;
DROP TABLE restock;
DROP TABLE payment;
ALTER TABLE ledger DROP COLUMN laid_slots, DROP COLUMN changes;
