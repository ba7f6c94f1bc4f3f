/**
 * Keeps late writes out of what a lock protects.
 *
 * A program that was frozen while it held a lock goes on where it stood, and writes after the next holder. Nothing that it does itself
 * prevents that. So the holder of a lock sends its tickets along. What is written to refuses a ticket that is older than one that it has
 * seen.
 *
 * The caller's half sends the tickets of the locks that are held around a call, as in the body of Client.withLock: `clientInterceptor` for
 * gRPC, `headers` for HTTP. The other half is a `Gate`, in the service that guards something: it refuses stale calls, by a mark in a
 * `Store` that survives restarts; `serverInterceptor` asks it in gRPC. Where the effect is a transaction in a database, compare the token
 * in that transaction, which is better, with `enter` of a `Dialect`: a gate looks when a call arrives, and the effect comes later.
 *
 * What is said of headers, answers and marks here is the same for the clients of all languages.
 */

export { Gate, type GateOptions, type Store } from "./fence_gate.js";
export { clientInterceptor, serverInterceptor, ticketsOf } from "./fence_grpc.js";
export { HEADER, headers, parse, render } from "./fence_header.js";
export { type Reason, RefusedError } from "./fence_refusal.js";
export {
  type Dialect,
  MYSQL,
  type MysqlConnection,
  type MysqlPool,
  POSTGRESQL,
  type PostgresqlConnection,
  SQLITE,
  type SqliteDatabase,
  SqlStore,
} from "./fence_sql.js";
export { FileStore } from "./fence_store.js";
