package fence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A Dialect is what a database is told about marks. They are in a table `fence`, which all clients share.
type Dialect struct {
	create, raise string
	read          string // the mark behind raise, unless that has returned it
}

// The databases whose statements are known.
var (
	// PostgreSQL is for pgx and pq.
	PostgreSQL = Dialect{
		create: "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
		raise: "INSERT INTO fence VALUES ($1, $2) " +
			"ON CONFLICT (lock_name) DO UPDATE SET token = GREATEST(fence.token, excluded.token) RETURNING token",
	}
	// MySQL is for MariaDB as well.
	MySQL = Dialect{
		create: "CREATE TABLE IF NOT EXISTS fence " +
			"(lock_name VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB",
		raise: "INSERT INTO fence VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
		// A plain SELECT would read the transaction's snapshot, which may be older than the mark.
		read: "SELECT token FROM fence WHERE lock_name = ? FOR UPDATE",
	}
	// SQLite is for version 3.35 and newer.
	SQLite = Dialect{
		create: "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
		raise: "INSERT INTO fence VALUES (?, ?) " +
			"ON CONFLICT (lock_name) DO UPDATE SET token = MAX(token, excluded.token) RETURNING token",
	}
)

// Create is the statement that makes the table, unless it is there.
func (d Dialect) Create() string { return d.create }

// Enter compares a ticket in the transaction that writes: call it before the writes. If it returns a Refusal, a larger token has been seen:
// roll back. Until the transaction ends, one with another ticket of the lock waits.
func Enter(ctx context.Context, transaction *sql.Tx, dialect Dialect, ticket sidekeeper.Ticket) error {
	largest, err := dialect.raiseIn(ctx, transaction, ticket.Lock, ticket.FencingToken)
	if err == nil && largest > ticket.FencingToken {
		return stale(ticket, largest)
	}
	return err
}

func (d Dialect) raiseIn(ctx context.Context, transaction *sql.Tx, lock string, token int64) (largest int64, err error) {
	if d.read == "" {
		err = transaction.QueryRowContext(ctx, d.raise, lock, token).Scan(&largest)
	} else if _, err = transaction.ExecContext(ctx, d.raise, lock, token); err == nil {
		err = transaction.QueryRowContext(ctx, d.read, lock).Scan(&largest)
	}
	if err != nil {
		return 0, fmt.Errorf("mark of lock %s: %w", lock, err)
	}
	return largest, nil
}

// A SQLStore keeps marks in a database, for all instances of a service. Make the table with Dialect.Create.
type SQLStore struct {
	Database *sql.DB
	Dialect  Dialect
}

// Raise is as Store has it.
func (s SQLStore) Raise(ctx context.Context, lock string, token int64) (largest int64, err error) {
	transaction, err := s.Database.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("mark of lock %s: %w", lock, err)
	}
	defer transaction.Rollback() //nolint:errcheck // after Commit it does nothing
	largest, err = s.Dialect.raiseIn(ctx, transaction, lock, token)
	if err != nil {
		return 0, err
	}
	if err := transaction.Commit(); err != nil {
		return 0, fmt.Errorf("mark of lock %s: %w", lock, err)
	}
	return largest, nil
}
