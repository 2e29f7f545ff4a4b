-- +goose Up
ALTER TABLE sku ADD COLUMN token_required INTEGER NOT NULL DEFAULT 0;

ALTER TABLE audit ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN reason TEXT NOT NULL DEFAULT '' CHECK (length(CAST(reason AS BLOB)) <= 1024);
ALTER TABLE audit ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_target ON audit (target, seq);

-- +goose Down
DROP INDEX audit_target;
DROP INDEX audit_actor;
ALTER TABLE audit DROP COLUMN request_id;
ALTER TABLE audit DROP COLUMN status;
ALTER TABLE audit DROP COLUMN reason;
ALTER TABLE audit DROP COLUMN role;
ALTER TABLE sku DROP COLUMN token_required;
