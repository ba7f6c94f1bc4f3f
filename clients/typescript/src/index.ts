/**
 * The TypeScript client of a Sidekeeper sidecar: distributed locks, semaphores, elections, barriers, sequences, membership and
 * configuration.
 *
 * A lock is a stream: while the stream is open you hold the lock, and a running sidecar ends the stream before anyone else is granted
 * the lock. A frozen sidecar cannot end a stream, so the client keeps the deadline itself: it asks the sidecar regularly for how long the
 * lock is proven to be valid, counts that from when the question was sent, on a clock that includes the time of suspension, and treats
 * as lost what is not confirmed in time.
 *
 * No client can protect a program that is paused between checking the lock and acting on it. Pass the fencing token to whatever the lock
 * protects, and have that refuse smaller ones.
 *
 * @packageDocumentation
 */

export { type AwaitBarrierOptions, BarrierEntry, type BarrierOptions } from "./barrier.js";
export { Client, type ClientOptions } from "./client.js";
export { Commit, Config, ConfigView, type Precondition } from "./config.js";
export * from "./errors.js";
export {
  type CampaignOptions,
  type Candidate,
  type ElectionView,
  type Leader,
  Leadership,
  type Observation,
  type WithLeadershipOptions,
  type YieldRequest,
} from "./election.js";
export * as fence from "./fence.js";
export { type CurrentToken, Ticket, type Verification, tickets, unguarded } from "./guard.js";
export { type Job, type JobTick, Jobs, type JobsOptions, type LockedOptions, type TickKey, type TickOptions } from "./jobs.js";
export { Lease, type LeaseOptions } from "./lease.js";
export { Lock, type LockOptions, type WithLockOptions } from "./lock.js";
export { type AllOptions, Locks, type WantedLock, type WithLocksOptions } from "./locks.js";
export { type JoinOptions, Membership } from "./membership.js";
export { nameOf, segmentOf } from "./names.js";
export { Attempt, type OnceOptions, type Outcome } from "./once.js";
export {
  type PermitContender,
  Permits,
  type PermitsOptions,
  type Quarantine,
  type SemaphoreView,
  type WithPermitsOptions,
} from "./permits.js";
export { Tick, type WorkOptions } from "./schedule.js";
export { type Assignment, Item, type ItemHandler, type ShareOptions } from "./share.js";
export { Claim, type ClaimOptions } from "./standing.js";
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
  Reservation,
  Revocation,
  SequenceState,
} from "./types.js";
