package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migration/mysql/*.sql migration/sqlite/*.sql
var migrationFiles embed.FS

// Migrate brings the schema of the configured database up to this build's. It is safe to repeat, and creates the
// SQLite file, but no MySQL database.
func Migrate(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	d := dialectOf(cfg.Dialect)
	p, err := d.open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = p.close() }()
	folder, err := fs.Sub(migrationFiles, "migration/"+d.name)
	if err != nil {
		return err
	}
	if err := d.migrate(ctx, p.write, folder); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// checkSchema refuses a database that lacks migrations of this build. A newer schema is taken: that is how a rolling
// upgrade looks from an old node.
func (db *DB) checkSchema(ctx context.Context) error {
	want, err := newestMigration(db.dialect.name)
	if err != nil {
		return err
	}
	var have int64
	if err := db.read.QueryRowContext(ctx, db.sql.schemaVersion).Scan(&have); err != nil {
		return fmt.Errorf("the database has no schema of this program (run `stockade migrate`): %w", err)
	}
	if have < want {
		return fmt.Errorf("the database's schema is version %d, this build needs %d: run `stockade migrate`", have, want)
	}
	return nil
}

// newestMigration reads the version from the file names, which start with it.
func newestMigration(dialect string) (int64, error) {
	files, err := fs.ReadDir(migrationFiles, "migration/"+dialect)
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		newest = max(newest, version)
	}
	return newest, nil
}
