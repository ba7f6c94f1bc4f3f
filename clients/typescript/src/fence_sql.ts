/** Marks in a database, and the comparison in the transaction that writes. */

import type { Store } from "./fence_gate.js";
import { compare } from "./fence_refusal.js";
import type { Ticket } from "./guard.js";

/**
 * What a database is told about marks, with the calls of its usual driver, which is no dependency of this package: another driver does as
 * well, behind an object with the same calls. Marks are in a table `fence`, which the clients of all languages share.
 */
export interface Dialect<Connection, Database, Entered = Promise<void>> {
  /** Makes the table, unless it is there. */
  readonly create: string;
  /**
   * Compares a ticket in the transaction that writes: call it before the writes. Throws RefusedError if a larger token has been seen; roll
   * back then. Until the transaction ends, one with another ticket of the lock waits.
   */
  enter(connection: Connection, ticket: Ticket): Entered;
  /** Raises a mark outside of any transaction of yours, as Store does. */
  raise(database: Database, lock: string, token: bigint): Promise<bigint>;
}

/** A connection of `pg`, or its pool. */
export interface PostgresqlConnection {
  query(statement: string, values: string[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** A connection of `mysql2/promise`. */
export interface MysqlConnection {
  execute(statement: string, values: string[]): Promise<readonly [unknown, unknown]>;
}

/** The pool of `mysql2/promise`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection & { commit(): Promise<unknown>; release(): void; destroy(): void }>;
}

/** A database of `better-sqlite3` or `node:sqlite`. */
export interface SqliteDatabase {
  exec(statement: string): unknown;
  prepare(statement: string): { all(...values: (string | bigint)[]): readonly unknown[] };
}

/** PostgreSQL, with `pg`. A store takes the pool, whose statements each commit. */
export const POSTGRESQL: Dialect<PostgresqlConnection, PostgresqlConnection> = {
  create: "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
  enter: async (connection, ticket) => {
    compare(ticket, await raisePostgresql(connection, ticket.lock, ticket.fencingToken));
  },
  raise: async (pool, lock, token) => raisePostgresql(pool, lock, token),
};

/** MariaDB and MySQL, with `mysql2/promise`. */
export const MYSQL: Dialect<MysqlConnection, MysqlPool> = {
  create:
    "CREATE TABLE IF NOT EXISTS fence " +
    "(lock_name VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB",
  enter: async (connection, ticket) => {
    compare(ticket, await raiseMysql(connection, ticket.lock, ticket.fencingToken));
  },
  raise: async (pool, lock, token) => {
    const connection = await pool.getConnection();
    try {
      const largest = await raiseMysql(connection, lock, token);
      await connection.commit(); // where statements do not commit by themselves
      connection.release();
      return largest;
    } catch (error) {
      connection.destroy(); // the pool must not hand it out with a transaction under way
      throw error;
    }
  },
};

/**
 * SQLite 3.35 or newer, with `better-sqlite3` or `node:sqlite`. `enter` returns at once, without a promise, so that nothing else that the
 * program does gets into the transaction.
 */
export const SQLITE: Dialect<SqliteDatabase, SqliteDatabase, void> = {
  create: "CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
  enter: (database, ticket) => {
    compare(ticket, raiseSqlite(database, ticket.lock, ticket.fencingToken));
  },
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws rejects the promise
  raise: async (database, lock, token) => {
    database.exec("BEGIN IMMEDIATE"); // fails within another transaction, which might be rolled back with the mark
    try {
      const largest = raiseSqlite(database, lock, token);
      database.exec("COMMIT");
      return largest;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  },
};

/** Keeps marks in a database, for all instances of a service. Make the table with `create` of the dialect. */
export class SqlStore<Database> implements Store {
  constructor(
    private readonly database: Database,
    private readonly dialect: Dialect<never, Database, unknown>,
  ) {}

  /** See Store. */
  async raise(lock: string, token: bigint): Promise<bigint> {
    return this.dialect.raise(this.database, lock, token);
  }
}

// Marks are read as text, since drivers make numbers of them, which have 53 bits.

async function raisePostgresql(connection: PostgresqlConnection, lock: string, token: bigint): Promise<bigint> {
  const statement =
    "INSERT INTO fence VALUES ($1, $2) " +
    "ON CONFLICT (lock_name) DO UPDATE SET token = GREATEST(fence.token, excluded.token) RETURNING CAST(token AS TEXT) AS token";
  const { rows } = await connection.query(statement, [lock, `${token}`]);
  return markIn(rows);
}

async function raiseMysql(connection: MysqlConnection, lock: string, token: bigint): Promise<bigint> {
  const raise = "INSERT INTO fence VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))";
  await connection.execute(raise, [lock, `${token}`]);
  // A plain SELECT would read the transaction's snapshot, which may be older than the mark.
  const read = "SELECT CAST(token AS CHAR) AS token FROM fence WHERE lock_name = ? FOR UPDATE";
  const [rows] = await connection.execute(read, [lock]);
  return markIn(rows as readonly unknown[]);
}

function raiseSqlite(database: SqliteDatabase, lock: string, token: bigint): bigint {
  const statement =
    "INSERT INTO fence VALUES (?, ?) " +
    "ON CONFLICT (lock_name) DO UPDATE SET token = MAX(token, excluded.token) RETURNING CAST(token AS TEXT) AS token";
  return markIn(database.prepare(statement).all(lock, token));
}

function markIn([row]: readonly unknown[]): bigint {
  const { token } = (row ?? {}) as { readonly token?: string };
  if (token === undefined) {
    throw new Error("the mark that was just raised cannot be read");
  }
  return BigInt(token);
}
