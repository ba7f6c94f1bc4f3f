/** Databases for tests: PostgreSQL and MariaDB as Debian has them, on Unix sockets, and SQLite. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import type { TestContext } from "node:test";

import Sqlite from "libsql";
import mysql from "mysql2/promise";
import pg from "pg";

import { type Ticket, fence } from "../src/index.js";
import { PATIENT, until } from "./sidecar.js";

export type Row = Readonly<Record<string, unknown>>;

/** A transaction on a connection of its own. */
export interface Transaction {
  /** Runs a statement as the driver has it. */
  run(statement: string, ...values: (string | bigint)[]): Promise<readonly Row[]>;
  enter(ticket: Ticket): Promise<void>;
  /** Ends it, and gives the connection back. */
  end(how: "COMMIT" | "ROLLBACK"): Promise<void>;
}

/** A database of its own. Its connections wait a tenth of a second for what another transaction has locked; MariaDB's, a second. */
export interface Database {
  readonly dialect: { readonly create: string };
  /** Keeps marks in it. */
  readonly store: fence.Store;
  /** What a transaction begins with that reads one state throughout. */
  readonly snapshot: string;
  /** The codes of the driver's errors when it has waited in vain, or a snapshot is too old. */
  readonly refusals: readonly string[];
  begin(how?: string): Promise<Transaction>;
}

function program(name: string): string {
  const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql") : [];
  const searched = (process.env["PATH"] ?? "").split(path.delimiter);
  const folders = [...versions.map((version) => `/usr/lib/postgresql/${version}/bin`), "/usr/sbin", ...searched];
  const found = folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
  if (found === undefined) {
    throw new Error(`there is no ${name}: see tools/need`);
  }
  return found;
}

/** Whom servers run as that do not run as root, if this is root. */
const user = process.getuid?.() === 0 ? { uid: idOfNobody("-u"), gid: idOfNobody("-g") } : undefined;

function idOfNobody(which: string): number {
  return Number(execFileSync("id", [which, "nobody"], { encoding: "utf8" }));
}

/** Has what it is given done when the test is over, the last first. */
type After = (undo: () => unknown) => void;

function lastFirst(t: TestContext): After {
  const undone: (() => unknown)[] = [];
  t.after(async () => {
    for (const undo of undone.reverse()) {
      await undo();
    }
  });
  return (undo) => undone.push(undo);
}

/** A folder for a server. */
function folderUntil(after: After): string {
  const folder = mkdtempSync("/tmp/sk"); // short, since the path of a Unix socket is
  after(() => rmSync(folder, { recursive: true, force: true }));
  if (user !== undefined) {
    chownSync(folder, user.uid, user.gid);
  }
  return folder;
}

/** Runs a server in a folder, and returns when it answers. */
async function serve(
  after: After,
  folder: string,
  [command, ...flags]: readonly [string, ...string[]],
  ask: () => Promise<unknown>,
) {
  const log = openSync(path.join(folder, "log"), "w");
  const server = spawn(program(command), flags, { ...user, stdio: ["ignore", log, log] });
  closeSync(log);
  after(async () => ended(server));
  await until(`${command} starts`, PATIENT, async () => {
    if (server.exitCode !== null) {
      throw new Error(readFileSync(path.join(folder, "log"), "utf8"));
    }
    return ask().then(
      () => true,
      () => false,
    );
  });
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode === null && server.signalCode === null) {
    await new Promise((resolve) => {
      server.once("exit", resolve);
      server.kill("SIGTERM");
    });
  }
}

export async function postgresql(t: TestContext): Promise<Database & { readonly pool: pg.Pool }> {
  const after = lastFirst(t);
  const folder = folderUntil(after);
  const data = path.join(folder, "data");
  const initialize = ["--pgdata", data, "--username=test", "--auth=trust", "--no-sync", "--locale=C"];
  execFileSync(program("initdb"), initialize, { ...user, stdio: "ignore" });
  const pool = new pg.Pool({ host: folder, user: "test", database: "postgres", options: "-c lock_timeout=100" });
  const command = ["postgres", "-D", data, "-k", folder, "-c", "listen_addresses="] as const;
  await serve(after, folder, command, async () => pool.query("SELECT 1"));
  after(async () => pool.end());
  return {
    pool,
    dialect: fence.POSTGRESQL,
    store: new fence.SqlStore(pool, fence.POSTGRESQL),
    snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ",
    refusals: ["55P03", "40001"],
    begin: async (how = "BEGIN") => {
      const connection = await pool.connect();
      await connection.query(how);
      return {
        run: async (statement, ...values) => (await connection.query<Row>(statement, values.map(String))).rows,
        enter: async (ticket) => fence.POSTGRESQL.enter(connection, ticket),
        end: async (how) => {
          await connection.query(how).finally(() => connection.release());
        },
      };
    },
  };
}

export async function mariadb(t: TestContext): Promise<Database> {
  const after = lastFirst(t);
  const folder = folderUntil(after);
  const data = `--datadir=${folder}/data`;
  const initialize = ["--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"];
  execFileSync(program("mariadb-install-db"), initialize, { ...user, cwd: folder, stdio: "ignore" });
  const files = [data, `--socket=${folder}/s.sock`, `--pid-file=${folder}/pid`, "--skip-networking"];
  // Its statements do not commit by themselves, which is not so with others unless somebody wants it.
  const flags = [...files, "--innodb-lock-wait-timeout=1", "--innodb-buffer-pool-size=8M", "--autocommit=0"];
  const pool = mysql.createPool({ socketPath: `${folder}/s.sock`, user: "root", database: "mysql" });
  await serve(after, folder, ["mariadbd", "--no-defaults", ...flags], async () => pool.query("SELECT 1"));
  after(async () => pool.end());
  return {
    dialect: fence.MYSQL,
    store: new fence.SqlStore(pool, fence.MYSQL),
    snapshot: "START TRANSACTION",
    refusals: ["ER_LOCK_WAIT_TIMEOUT", "ER_LOCK_DEADLOCK", "ER_CHECKREAD"],
    begin: async (how = "START TRANSACTION") => {
      const connection = await pool.getConnection();
      await connection.query(how);
      return {
        run: async (statement, ...values) => {
          const [rows] = await connection.query<mysql.RowDataPacket[]>(statement, values.map(String));
          return Array.isArray(rows) ? rows : [];
        },
        enter: async (ticket) => fence.MYSQL.enter(connection, ticket),
        end: async (how) => {
          await connection.query(how).finally(() => connection.release());
        },
      };
    },
  };
}

/** With the calls of better-sqlite3, in a package that needs no compiler. */
export async function sqlite(t: TestContext): Promise<Database & { open(): Sqlite.Database }> {
  const after = lastFirst(t);
  const folder = folderUntil(after);
  const open = (): Sqlite.Database => {
    const opened = new Sqlite(path.join(folder, "db"), { timeout: 100 });
    after(() => opened.close());
    return opened;
  };
  return Promise.resolve({
    open,
    dialect: fence.SQLITE,
    store: new fence.SqlStore(open(), fence.SQLITE),
    snapshot: "BEGIN",
    refusals: ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"],
    begin: async (how = "BEGIN") => {
      const connection = open();
      connection.exec(how);
      return Promise.resolve({
        run: async (statement, ...values) => Promise.resolve(connection.prepare(statement).all(...values) as Row[]),
        enter: async (ticket) => {
          fence.SQLITE.enter(connection, ticket);
          return Promise.resolve();
        },
        end: async (how) => {
          try {
            connection.exec(how);
          } catch (error) {
            connection.exec("ROLLBACK"); // a COMMIT that had to wait in vain could be tried again
            throw error;
          }
          return Promise.resolve();
        },
      });
    },
  });
}
