// Package databases tests what package fence of the Go client tells databases, on PostgreSQL, MariaDB and SQLite. It is a module of its own
// for their drivers' sake.
package databases
