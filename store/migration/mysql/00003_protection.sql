-- +goose Up
-- token_required: purchases of the SKU need a purchase token.
ALTER TABLE sku ADD COLUMN token_required TINYINT NOT NULL DEFAULT 0;

-- One row for each write of an operator, and for each of the service's own. status is that of the answer, 0 for the
-- service's own.
ALTER TABLE audit
    ADD COLUMN role       VARBINARY(16)   NOT NULL DEFAULT '',
    ADD COLUMN reason     VARBINARY(1024) NOT NULL DEFAULT '',
    ADD COLUMN status     SMALLINT        NOT NULL DEFAULT 0,
    ADD COLUMN request_id VARBINARY(64)   NOT NULL DEFAULT '',
    ADD KEY audit_actor (actor, seq),
    ADD KEY audit_target (target, seq);

-- +goose Down
ALTER TABLE audit
    DROP KEY audit_target, DROP KEY audit_actor,
    DROP COLUMN request_id, DROP COLUMN status, DROP COLUMN reason, DROP COLUMN role;
ALTER TABLE sku DROP COLUMN token_required;
