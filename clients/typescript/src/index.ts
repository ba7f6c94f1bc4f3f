/**
 * The TypeScript client of a Sidekeeper sidecar: locks that end in time, sequences, membership and configuration.
 *
 * A lock is a stream: while the stream is open the lock is yours, and while its sidecar runs it ends before anybody else can be granted
 * the lock. A frozen sidecar cannot end a stream, so the client keeps the deadline itself: it asks the sidecar regularly for how long what it holds is
 * certainly still its own, counts the answer from when the question was sent, on a clock that goes on while the machine is suspended,
 * and takes for lost what was not confirmed in time.
 *
 * What nobody can help is a program that stops between its look at the lock and its act. Hand the fencing token to whatever the lock
 * protects, and let that refuse smaller ones.
 *
 * @packageDocumentation
 */

export { Client, type ClientOptions } from "./client.js";
export { Commit, Config, ConfigView, type Precondition } from "./config.js";
export * from "./errors.js";
export { Lease, type LeaseOptions } from "./lease.js";
export { Lock, type LockOptions, type WithLockOptions } from "./lock.js";
export { type JoinOptions, Membership } from "./membership.js";
export { type NumberOptions, Sequence } from "./sequence.js";
export { ADDRESS_VARIABLE, DEFAULT_ADDRESS } from "./transport.js";
export { pick } from "./types.js";
export type {
  ConfigChange,
  ConfigEvent,
  Contender,
  Entry,
  GroupMember,
  GroupView,
  Labels,
  LockView,
  Logger,
  Mode,
  Numbers,
  OnConflict,
  Queued,
  Revocation,
  SequenceState,
} from "./types.js";
