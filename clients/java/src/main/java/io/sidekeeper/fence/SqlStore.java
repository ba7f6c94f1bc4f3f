package io.sidekeeper.fence;

import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * Keeps marks in a database, for all instances of a service. Make the table with {@link
 * SqlDialect#create}.
 */
public final class SqlStore implements Store {
  private final DataSource database;
  private final SqlDialect dialect;

  /**
   * Makes one.
   *
   * @param database whose connections commit each statement, as they do unless they are told not to
   * @param dialect what the database is told
   */
  public SqlStore(DataSource database, SqlDialect dialect) {
    this.database = database;
    this.dialect = dialect;
  }

  @Override
  public long raise(String lock, long token) throws SQLException {
    try (Connection connection = database.getConnection()) {
      if (!connection.getAutoCommit()) {
        throw new SQLException("the marks take connections that commit each statement");
      }
      return dialect.raise(connection, lock, token);
    }
  }
}
