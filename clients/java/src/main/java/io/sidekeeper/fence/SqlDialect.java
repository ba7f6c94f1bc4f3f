package io.sidekeeper.fence;

import io.sidekeeper.Ticket;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** What a database is told about marks. They are in a table {@code fence}. */
public enum SqlDialect {
  /** PostgreSQL. */
  POSTGRESQL(
      "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
      "INSERT INTO fence VALUES (?, ?) ON CONFLICT (lock_name)"
          + " DO UPDATE SET token = GREATEST(fence.token, excluded.token) RETURNING token",
      null),

  /** MariaDB and MySQL. */
  MYSQL(
      "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin"
          + " PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB",
      "INSERT INTO fence VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
      // A plain SELECT would read the transaction's snapshot, which may be older than the mark.
      "SELECT token FROM fence WHERE lock_name = ? FOR UPDATE");

  private final String create;
  private final String raise;
  private final @Nullable String read;

  SqlDialect(String create, String raise, @Nullable String read) {
    this.create = create;
    this.raise = raise;
    this.read = read;
  }

  /**
   * Says how to make the table, unless it is there.
   *
   * @return the statement
   */
  public String create() {
    return create;
  }

  /**
   * Compares a ticket in the transaction that writes: call it before the writes. Until the
   * transaction ends, one with another ticket of the lock waits.
   *
   * @param connection with the transaction
   * @param ticket of the holder that writes
   * @throws RefusedException if a larger token has been seen; roll back then
   * @throws SQLException if the database refuses it
   */
  public void enter(Connection connection, Ticket ticket) throws SQLException {
    long largest = raise(connection, ticket.lock(), ticket.fencingToken());
    if (largest > ticket.fencingToken()) {
      throw RefusedException.stale(ticket, largest);
    }
  }

  long raise(Connection connection, String lock, long token) throws SQLException {
    try (PreparedStatement raising = connection.prepareStatement(raise)) {
      raising.setString(1, lock);
      raising.setLong(2, token);
      if (read == null) {
        return first(raising);
      }
      raising.executeUpdate();
    }
    try (PreparedStatement reading = connection.prepareStatement(read)) {
      reading.setString(1, lock);
      return first(reading);
    }
  }

  private static long first(PreparedStatement statement) throws SQLException {
    try (ResultSet marks = statement.executeQuery()) {
      if (!marks.next()) {
        throw new SQLException("a mark that was just made is gone");
      }
      return marks.getLong(1);
    }
  }
}
