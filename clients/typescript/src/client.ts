/** The client: the way to leases, locks, barriers, memberships, sequences and the configuration. */

import os from "node:os";

import type { ChannelCredentials, Client as Channel } from "@grpc/grpc-js";

import {
  AWAIT_BARRIER_OPTIONS,
  type AwaitBarrierOptions,
  BARRIER_OPTIONS,
  BarrierEntry,
  type BarrierOptions,
  awaitBarrier,
} from "./barrier.js";
import { sleep } from "./clock.js";
import { Config } from "./config.js";
import { AlreadyDoneError, LostError, MemberRemovedError, MemberReplacedError, type SidekeeperError } from "./errors.js";
import { AssignmentServiceService } from "./gen/sidekeeper/assignment/v1/assignment.js";
import { BarrierServiceService } from "./gen/sidekeeper/barrier/v1/barrier.js";
import { ConfigServiceService } from "./gen/sidekeeper/config/v1/config.js";
import {
  CAMPAIGN_OPTIONS,
  type CampaignOptions,
  type ElectionView,
  Leadership,
  type Observation,
  Observer,
  type WithLeadershipOptions,
  electionViewFrom,
} from "./election.js";
import { ElectionServiceService } from "./gen/sidekeeper/election/v1/election.js";
import { FencingServiceService } from "./gen/sidekeeper/fencing/v1/fencing.js";
import { LeaseServiceService } from "./gen/sidekeeper/lease/v1/lease.js";
import { LockServiceService } from "./gen/sidekeeper/lock/v1/lock.js";
import { MembershipServiceService } from "./gen/sidekeeper/membership/v1/membership.js";
import { OnceServiceService } from "./gen/sidekeeper/once/v1/once.js";
import { ScheduleServiceService } from "./gen/sidekeeper/schedule/v1/schedule.js";
import { SemaphoreServiceService } from "./gen/sidekeeper/semaphore/v1/semaphore.js";
import { SequenceServiceService } from "./gen/sidekeeper/sequence/v1/sequence.js";
import { type CurrentToken, type Ticket, type Verification, guardsOf } from "./guard.js";
import { type Attempt as Try, Streams, throughAbsence } from "./held.js";
import { LEASE_OPTIONS, Lease, type LeaseOptions, leaseKind, onOwn } from "./lease.js";
import {
  LOCK_OPTIONS,
  type Lock,
  type LockOptions,
  type WithLockOptions,
  acquire,
  lockKind,
  runHolding,
  withHeld,
} from "./lock.js";
import {
  ALL_OPTIONS,
  type AllOptions,
  type Locks,
  type WantedLock,
  type WithLocksOptions,
  acquireAll,
  locksKind,
} from "./locks.js";
import { JOIN_OPTIONS, type JoinOptions, Membership } from "./membership.js";
import type { Multiplex } from "./multiplex.js";
import { Attempt, ONCE_OPTIONS, type OnceOptions } from "./once.js";
import {
  ASK_OPTIONS,
  type Rules,
  abortSignal,
  callback,
  checkArguments,
  checkOptions,
  credentials,
  having,
  labels,
  text,
} from "./options.js";
import {
  PERMITS_OPTIONS,
  Permits,
  type PermitsOptions,
  type SemaphoreView,
  type WithPermitsOptions,
  semaphoreViewFrom,
} from "./permits.js";
import { Tick, WORK_OPTIONS, type WorkOptions } from "./schedule.js";
import { Sequence } from "./sequence.js";
import { type ItemHandler, SHARE_OPTIONS, type ShareOptions, share } from "./share.js";
import { CLAIM_OPTIONS, Claim, type ClaimOptions, claim } from "./standing.js";
import {
  Away,
  Backoff,
  type Stub,
  answered,
  callIdempotent,
  callNonIdempotent,
  isSocket,
  isTransient,
  messages,
  openChannel,
  reopened,
  resolve,
  stubOf,
  views,
  wasLost,
  watch,
} from "./transport.js";
import {
  type Contender,
  type GroupView,
  type LockView,
  type Logger,
  conflicts,
  duration,
  groupViewFrom,
  lockViewFrom,
} from "./types.js";

/** How to reach the sidecar. */
export interface ClientOptions {
  /**
   * `unix:///path`, a path, or `host:port`; by default the value of SIDEKEEPER_ADDRESS, or if that is not set,
   * `unix:///run/sidekeeper/sidekeeper.sock`.
   */
  readonly address?: string;
  /** For TLS, from `credentials.createSsl` of @grpc/grpc-js. Required unless the address is a Unix socket or loopback. */
  readonly credentials?: ChannelCredentials;
  /** Receives what goes wrong in the background; by default that is not logged. */
  readonly logger?: Logger;
}

export const CLIENT_OPTIONS: Rules<ClientOptions> = { address: text, credentials, logger: having("debug", "error") };

/** A client of one sidecar. Close it: that gives up everything that it holds and waits for. */
export class Client implements Disposable {
  /** The configuration. */
  readonly config: Config;
  private readonly channel: Channel;
  private readonly streams: Streams;
  private readonly locks: Stub<typeof LockServiceService>;
  private readonly fencing: Stub<typeof FencingServiceService>;
  private readonly elections: Stub<typeof ElectionServiceService>;
  private readonly semaphores: Stub<typeof SemaphoreServiceService>;
  private readonly barriers: Stub<typeof BarrierServiceService>;
  private readonly works: Stub<typeof OnceServiceService>;
  private readonly schedules: Stub<typeof ScheduleServiceService>;
  private readonly sets: Stub<typeof AssignmentServiceService>;
  private readonly groups: Stub<typeof MembershipServiceService>;
  private readonly sequences: Stub<typeof SequenceServiceService>;
  private readonly lock: ReturnType<typeof lockKind>;
  private readonly several: ReturnType<typeof locksKind>;
  private readonly lease: ReturnType<typeof leaseKind>;
  /** Those of locks that are given none. */
  private readonly ownLeases: ReturnType<typeof leaseKind> | undefined;

  /**
   * Throws RangeError if the address is invalid, and TypeError for other options that are wrong. It does not wait for a connection; the first
   * call does.
   */
  constructor(options: ClientOptions = {}) {
    checkOptions(options, CLIENT_OPTIONS);
    this.channel = openChannel(options.address, options.credentials);
    this.streams = new Streams(options.logger);
    this.locks = stubOf(this.channel, LockServiceService);
    this.fencing = stubOf(this.channel, FencingServiceService);
    this.elections = stubOf(this.channel, ElectionServiceService);
    this.semaphores = stubOf(this.channel, SemaphoreServiceService);
    this.barriers = stubOf(this.channel, BarrierServiceService);
    this.works = stubOf(this.channel, OnceServiceService);
    this.schedules = stubOf(this.channel, ScheduleServiceService);
    this.sets = stubOf(this.channel, AssignmentServiceService);
    this.groups = stubOf(this.channel, MembershipServiceService);
    this.sequences = stubOf(this.channel, SequenceServiceService);
    this.lock = lockKind(this.streams, this.locks);
    this.several = locksKind(this.lock, this.locks);
    const onSocket = isSocket(resolve(options.address).address);
    this.lease = leaseKind(this.streams, stubOf(this.channel, LeaseServiceService), onSocket);
    this.ownLeases = onSocket ? this.lease : undefined;
    this.config = new Config(stubOf(this.channel, ConfigServiceService), this.streams);
  }

  /** Gives up everything that this client holds and waits for. Calling it again does nothing. */
  close(): void {
    if (!this.streams.closed) {
      this.streams.close();
      this.channel.close();
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Opens a lease. While the sidecar or the ensemble is away, it tries again for as long as wait says; without wait, for 10 seconds. */
  async openLease(options: LeaseOptions = {}): Promise<Lease> {
    checkOptions(options, LEASE_OPTIONS);
    const { ttl, owner = "", metadata = {} } = options;
    const request = { ttl: duration(ttl), owner, metadata, keepalive: undefined };
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) => new Lease(this.lease).open(request, waiting.signal, attempt)),
    );
  }

  /**
   * Waits in the queue of the lock and settles when the lock is granted and valid.
   *
   * Rejects with LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors, such
   * as LeaseLostError if it was granted and lost before this could settle; with the signal's reason.
   *
   * While the sidecar or the ensemble is away, it tries again, at the queue's end, for as long as wait says; without wait, for 10 seconds
   * each time.
   */
  async acquire(name: string, options: LockOptions = {}): Promise<Lock> {
    checkArguments({ name });
    checkOptions(options, LOCK_OPTIONS);
    return answered(options, async (waiting) => acquire(this.lock, this.ownLeases, name, waiting));
  }

  /**
   * Holds the lock while body runs, releases it, and returns the result of body.
   *
   * The signal that body gets is aborted, with LostError as its reason, as soon as the lock is lost, and with SuspendedError when it has
   * been suspended for suspensionGrace; also with the reason of the caller's own signal. A body that fails because its signal was aborted
   * rejects with that reason, whatever error a function made of it. A body that has lost its lock rejects with LostError unless it fails by
   * itself.
   *
   * What body writes with this client is written only while the lock is held (see Lock.guard); unguarded makes it not so.
   */
  async withLock<T>(
    name: string,
    options: WithLockOptions,
    body: (lock: Lock, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    return withHeld(async (how) => this.acquire(name, how), LOCK_OPTIONS, options, body);
  }

  /**
   * Waits until it is the caller's turn for each of 1 to 16 locks, and settles when all are granted and valid, as one hold.
   *
   * It takes its places in all queues at the same moment: callers that take what they need with one acquireAll never wait for each other in a
   * circle, whatever the order of the names. Errors, and what happens while the sidecar or the ensemble is away, as of acquire.
   */
  async acquireAll(locks: readonly (string | WantedLock)[], options: AllOptions = {}): Promise<Locks> {
    checkOptions(options, ALL_OPTIONS);
    return answered(options, async (waiting) => acquireAll(this.several, this.ownLeases, locks, waiting));
  }

  /**
   * Holds several locks, acquired at once, while body runs, releases them, and returns the result of body. The signal that body gets, and what
   * body writes, are as with withLock.
   */
  async withLocks<T>(
    locks: readonly (string | WantedLock)[],
    options: WithLocksOptions,
    body: (held: Locks, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    return withHeld(async (how) => this.acquireAll(locks, how), ALL_OPTIONS, options, body);
  }

  /**
   * Waits for its turn, and holds the lock without a process for so many seconds, 60 to 30 days, unless it is extended. The reason is for
   * people. Closing the client does not end the claim. With the id of an earlier call, the same claim answers again. While the sidecar or the
   * ensemble is away, it asks again, for as long as wait says. Without an answer, it releases a claim whose id it has made, as well as can be.
   *
   * Rejects with LockHeldError, WaitTimeoutError, ClaimEndedError, ClaimLimitError and other SidekeeperErrors; with the signal's reason.
   */
  async claim(name: string, reserveFor: number, reason: string, options: ClaimOptions = {}): Promise<Claim> {
    checkArguments({ name, reserveFor, reason });
    checkOptions(options, CLAIM_OPTIONS);
    const request = { name, reserveFor: duration(reserveFor), reason };
    return answered(options, async (waiting) => claim(this.streams, this.locks, request, waiting));
  }

  /** The claim with this id, to extend, check or release it. It makes no call. */
  claimById(claimId: string): Claim {
    checkArguments({ claimId });
    return new Claim(this.locks, claimId);
  }

  /**
   * Runs body while holding the lock and returns its result. The signal that body gets is aborted when the lock is lost, and body is run
   * again after the next grant. While the sidecar or the ensemble is unreachable, it tries again.
   */
  async runWhileLeader<T>(
    name: string,
    options: WithLockOptions,
    body: (lock: Lock, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    checkArguments({ body });
    const backoff = new Backoff();
    for (;;) {
      let lead: Lock | undefined;
      try {
        return await this.withLock(name, options, (lock, signal) => {
          lead = lock;
          backoff.reset();
          return body(lock, signal);
        });
      } catch (error) {
        const met = error instanceof LostError && error.what === `lock ${name}`;
        const lost = (lead?.error !== undefined || met) && !this.streams.closed;
        const passes = isTransient(error) || (options.lease === undefined && wasLost(error));
        if (options.signal?.aborted === true || !(lost || (lead === undefined && passes))) {
          throw error;
        }
      }
      await sleep(backoff.next(), options.signal);
    }
  }

  /**
   * Waits for its turn at the work of a key, and settles when the work is the caller's for some time to come, and its attempt is recorded.
   * Finish the attempt.
   *
   * Rejects with AlreadyDoneError, NotRepeatedError, LockHeldError, WaitTimeoutError, TooManyKeysError, EnsembleUnreachableError and other
   * SidekeeperErrors; with the signal's reason. While the sidecar or the ensemble is away, it tries again, as acquire does.
   */
  async begin(name: string, key: string, options: OnceOptions = {}): Promise<Attempt> {
    checkArguments({ name, key });
    checkOptions(options, ONCE_OPTIONS);
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) =>
        this.onLease(waiting, attempt, async (multiplex, own) =>
          new Attempt(this.streams, this.locks, this.works, multiplex, name, key, own, waiting).start(attempt),
        ),
      ),
    );
  }

  /**
   * Has work done once for a key, and returns whether it was done in this call. If it was done before, it returns false. Rejects as begin and
   * as Attempt.finish.
   *
   * The signal that work gets is aborted, with LostError as its reason, as soon as the lock is lost; also with the reason of the caller's own
   * signal. What work writes with this client is guarded by the attempt. If work rejects, the attempt has failed. Exception: if its lock was
   * lost by then, or if work rejects with LostError or GuardLostError, the attempt is lost. A success is recorded even if the lock was lost.
   *
   * It does not promise that work runs exactly once: if this process dies within it, another caller begins it again.
   */
  async once(
    name: string,
    key: string,
    options: OnceOptions,
    work: (attempt: Attempt, signal: AbortSignal) => unknown,
  ): Promise<boolean> {
    checkArguments({ work });
    let attempt: Attempt;
    try {
      attempt = await this.begin(name, key, options);
    } catch (error) {
      if (error instanceof AlreadyDoneError) {
        return false;
      }
      throw error;
    }
    await runHolding(attempt, options, work);
    return true;
  }

  /**
   * Waits for the next tick of a schedule, or for a run, and settles when it is the caller's for some time to come, and its attempt is recorded.
   * Finish the tick, and call work again for the one after. Its signal is aborted when its lock is lost: another caller may begin it again then.
   *
   * Rejects with ScheduleNotFoundError, ClocksDisagreeError, LockHeldError, WaitTimeoutError, EnsembleUnreachableError and other
   * SidekeeperErrors; with the signal's reason. While the sidecar or the ensemble is away, it tries again, as acquire does.
   */
  async work(name: string, options?: WorkOptions): Promise<Tick>;
  /**
   * Waits for a tick, runs body for it, and finishes it as body settles: as succeeded, or failed with what body rejects with. The signal that
   * body gets, what it writes, and when a tick is lost and not failed, are as in `once`. Rejects as the other form, body and Tick.finish do.
   */
  async work(name: string, options: WorkOptions, body: (tick: Tick, signal: AbortSignal) => unknown): Promise<void>;
  async work(
    name: string,
    options: WorkOptions = {},
    ...bodies: ((tick: Tick, signal: AbortSignal) => unknown)[]
  ): Promise<Tick | void> {
    checkArguments({ name });
    checkOptions(options, WORK_OPTIONS);
    bodies.forEach((body) => checkArguments({ body }));
    const tick = await answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) =>
        this.onLease(waiting, attempt, async (multiplex, own) =>
          new Tick(this.streams, this.locks, this.schedules, multiplex, name, own, waiting).start(attempt),
        ),
      ),
    );
    const [body] = bodies;
    if (body === undefined) {
      return tick;
    }
    await runHolding(tick, options, body);
  }

  /**
   * Works on the caller's part of the items of a set until the signal is aborted, and rejects with its reason then. The members of the set divide
   * the items among themselves.
   *
   * For each item of the caller, handler runs while the item's lock is held; what it writes with this client is guarded by that. Its signal is
   * aborted when the item moves to another member, with LostError when the lock is lost, when its release is asked for, and at the end. The lock
   * is released when the handler has settled, however long that takes. A handler that settles earlier is run again after 1 second, then 2, up to
   * a minute.
   *
   * When the membership is lost, and the lease is not given, the caller joins again after such a pause. Rejects with AssignmentNotFoundError,
   * InvalidFieldError and PolicyDeniedError, and with a given lease with LostError, when all handlers have settled.
   */
  async share(name: string, options: ShareOptions, handler: ItemHandler): Promise<never> {
    checkArguments({ name, handler });
    checkOptions(options, SHARE_OPTIONS);
    const { streams, lock: locks, sets } = this;
    const member = options.member ?? os.hostname();
    return share({ streams, locks, sets, name, member, options, handler, openLease: async (how) => this.openLease(how) });
  }

  /** Returns the holders and waiters of the lock. */
  async getLock(name: string): Promise<LockView> {
    checkArguments({ name });
    return lockViewFrom((await callIdempotent(this.locks.get, { name })).view);
  }

  /**
   * Yields what getLock returns, at once and after every change, also across restarts of the sidecar. Until the sidecar and the ensemble are
   * back, the last view is stale, and is yielded again as such. The signal ends it.
   */
  watchLock(name: string, signal?: AbortSignal): AsyncGenerator<LockView, void> {
    checkArguments({ name, signal });
    return views(
      () => watch(this.locks.watch, { name }),
      ({ view, stale }) => lockViewFrom(view, stale),
      signal,
    );
  }

  /**
   * Yields the first holder of the lock, undefined if it is free, at once and after every change. It does not say when that may be out of
   * date; observe does. The signal ends it.
   */
  async *watchLeader(name: string, signal?: AbortSignal): AsyncGenerator<Contender | undefined, void> {
    let seen = -1n;
    for await (const { holders, stale } of this.watchLock(name, signal)) {
      const token = holders[0]?.fencingToken ?? 0n;
      if (!stale && token !== seen) {
        seen = token;
        yield holders[0];
      }
    }
  }

  /**
   * Says whether the ticket's hold lasts, for a program that protects something stored elsewhere. The hold may have ended since: a resource
   * that can compare tokens should refuse all but the largest that it has seen.
   */
  async verify({ lock, fencingToken }: Ticket): Promise<Verification> {
    const { held, currentToken } = await callIdempotent(this.fencing.verify, { ticket: { lock, fencingToken }, consistency: 0 });
    return { held, currentToken };
  }

  /**
   * Yields what 1 to 100 locks are held with: each as soon as it is known, and again after every change. Of one lock no smaller token comes
   * after a larger one, until it ends: with a SidekeeperError, also when the sidecar is away, or with the signal's reason. What it yielded is
   * stale then.
   */
  async *watchTokens(locks: readonly string[], signal?: AbortSignal): AsyncGenerator<CurrentToken, void> {
    checkArguments({ locks, signal });
    for await (const { tokens } of messages(watch(this.fencing.watch, { locks: [...locks] }), signal)) {
      yield* tokens;
    }
  }

  /**
   * Asks every holder of the lock to release it, and returns how many were asked. With a grace in seconds, their holds are ended by
   * force when it has passed: for operators.
   */
  async revoke(name: string, options: { readonly reason?: string; readonly grace?: number } = {}): Promise<number> {
    checkArguments({ name });
    checkOptions(options, ASK_OPTIONS);
    const request = { name, reason: options.reason ?? "", grace: duration(options.grace) };
    return (await callIdempotent(this.locks.revoke, request)).asked;
  }

  /**
   * Waits for permits of a semaphore, and settles when they are granted and valid. Rejects with SemaphoreFullError, TooManyPermitsError,
   * WaitTimeoutError, SemaphoreNotFoundError, EnsembleUnreachableError and other SidekeeperErrors; with the signal's reason. While the
   * sidecar or the ensemble is away, it tries again, as acquire does.
   */
  async acquirePermits(semaphore: string, options: PermitsOptions = {}): Promise<Permits> {
    checkArguments({ semaphore });
    checkOptions(options, PERMITS_OPTIONS);
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) => this.acquirePermitsOnce(semaphore, waiting, attempt)),
    );
  }

  private async acquirePermitsOnce(semaphore: string, options: PermitsOptions, attempt: Try): Promise<Permits> {
    return this.onLease(options, attempt, async (multiplex, own) =>
      new Permits(this.streams, this.semaphores, multiplex, semaphore, own, options).acquire(attempt),
    );
  }

  /** Takes a hold on the lease of the options, or on one of its own. */
  private async onLease<H>(
    options: Pick<PermitsOptions, "lease" | "owner" | "metadata" | "signal">,
    attempt: Try,
    take: (multiplex: Multiplex, own: Lease | undefined) => Promise<H>,
  ): Promise<H> {
    const begin = async (lease: Lease, own?: Lease): Promise<H> => {
      const multiplex = lease.multiplexOf(this.streams);
      if (multiplex === undefined) {
        throw lease.error?.cause ?? new RangeError("the lease is another client's");
      }
      return take(multiplex, own);
    };
    return options.lease === undefined
      ? onOwn(this.lease, options, attempt, async (own) => begin(own, own))
      : begin(options.lease);
  }

  /**
   * Holds permits while body runs, releases them, and returns the result of body. The signal that body gets is aborted as that of withLock is.
   */
  async withPermits<T>(
    semaphore: string,
    options: WithPermitsOptions,
    body: (permits: Permits, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    return withHeld(async (how) => this.acquirePermits(semaphore, how), PERMITS_OPTIONS, options, body);
  }

  /**
   * Makes a semaphore with so many permits, 1 to 10,000. Making it again does nothing. Rejects with SemaphoreExistsError if it has another
   * limit.
   */
  async createSemaphore(name: string, limit: number): Promise<void> {
    checkArguments({ name, limit });
    await callIdempotent(this.semaphores.create, { name, limit });
  }

  /**
   * Sets how many permits there are, and returns of how many too many the holders were asked: those with a number beyond it first,
   * then those granted last. With a grace in seconds, their holds are ended by force when it has passed: for operators.
   */
  async resizeSemaphore(
    name: string,
    limit: number,
    options: { readonly reason?: string; readonly grace?: number } = {},
  ): Promise<number> {
    checkArguments({ name, limit });
    checkOptions(options, ASK_OPTIONS);
    const request = { name, limit, reason: options.reason ?? "", grace: duration(options.grace) };
    return (await callIdempotent(this.semaphores.resize, request)).asked;
  }

  /** Returns the limit, the holders, the waiters and the numbers in quarantine. Rejects with SemaphoreNotFoundError. */
  async getSemaphore(name: string): Promise<SemaphoreView> {
    checkArguments({ name });
    return semaphoreViewFrom((await callIdempotent(this.semaphores.get, { name })).view);
  }

  /**
   * Yields what getSemaphore returns, at once and after every change, also across restarts of the sidecar. Stale as in watchLock. The signal
   * ends it.
   */
  watchSemaphore(name: string, signal?: AbortSignal): AsyncGenerator<SemaphoreView, void> {
    checkArguments({ name, signal });
    return views(
      () => watch(this.semaphores.watch, { name }),
      ({ view, stale }) => semaphoreViewFrom(view, stale),
      signal,
    );
  }

  /** Sets a barrier, at which awaitBarrier waits until it is removed. Setting it again does nothing. */
  async setBarrier(name: string): Promise<void> {
    checkArguments({ name });
    await callIdempotent(this.barriers.set, { name });
  }

  /** Removes a barrier: the callers that wait at it go on. Removing one that is not set does nothing. */
  async removeBarrier(name: string): Promise<void> {
    checkArguments({ name });
    await callNonIdempotent(this.barriers.remove, { name });
  }

  /**
   * Settles when the barrier is not set, or was not at a moment since the call. Rejects with the signal's reason. While the sidecar or the
   * ensemble is away, it waits anew.
   */
  async awaitBarrier(name: string, options: AwaitBarrierOptions = {}): Promise<void> {
    checkArguments({ name });
    checkOptions(options, AWAIT_BARRIER_OPTIONS);
    await awaitBarrier(this.streams, this.barriers, name, options);
  }

  /**
   * Waits until so many callers, 1 to 1,000 and this one among them, stand at a double barrier, and settles when it has entered it with them.
   * Rejects with WaitTimeoutError, EnsembleUnreachableError and other SidekeeperErrors; with the signal's reason. While the sidecar or the
   * ensemble is away, it tries again, as acquire does.
   */
  async enterBarrier(name: string, size: number, options: BarrierOptions = {}): Promise<BarrierEntry> {
    checkArguments({ name, size });
    checkOptions(options, BARRIER_OPTIONS);
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) =>
        this.onLease(waiting, attempt, async (multiplex, own) =>
          new BarrierEntry(this.streams, this.barriers, multiplex, name, own, waiting).enter(size, attempt),
        ),
      ),
    );
  }

  /**
   * Waits for its turn to lead an election, and settles when the caller leads, for some time to come. The candidate's name is 1 to 128 bytes,
   * another one for each. Rejects with LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other
   * SidekeeperErrors; with the signal's reason. While the sidecar or the ensemble is away, it tries again, as acquire does.
   */
  async campaign(election: string, candidate: string, options: CampaignOptions = {}): Promise<Leadership> {
    checkArguments({ election, candidate });
    checkOptions(options, CAMPAIGN_OPTIONS);
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) =>
        this.onLease({ ...waiting, owner: candidate }, attempt, async (multiplex, own) =>
          new Leadership(this.streams, this.elections, multiplex, election, candidate, own, waiting).campaign(attempt),
        ),
      ),
    );
  }

  /**
   * Leads while body runs, resigns, and returns the result of body. What body writes with this client is guarded by the term. The signal
   * that body gets is aborted as that of withLock is.
   */
  async withLeadership<T>(
    election: string,
    candidate: string,
    options: WithLeadershipOptions,
    body: (leadership: Leadership, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    return withHeld(async (how) => this.campaign(election, candidate, how), CAMPAIGN_OPTIONS, options, body);
  }

  /** Returns who leads and who the other candidates are, in order. */
  async getElection(name: string): Promise<ElectionView> {
    checkArguments({ name });
    return electionViewFrom(await callIdempotent(this.elections.get, { name }));
  }

  /**
   * Yields who leads an election, at once and whenever that or the leader's value has changed, also across restarts of the sidecar: until it
   * is back, what was yielded is stale. After a term, it never yields an earlier one. The signal ends it.
   */
  async *observe(name: string, signal?: AbortSignal): AsyncGenerator<Observation, void> {
    checkArguments({ name, signal });
    const observer = new Observer();
    for await (const message of reopened(() => watch(this.elections.watch, { name }), signal)) {
      const observed = observer.learn(message instanceof Away ? undefined : message);
      if (observed !== undefined) {
        yield observed;
      }
    }
  }

  /**
   * Asks the leader to yield to a candidate, after the candidates ahead of that one have stepped back. With a grace in seconds, its term is
   * ended by force when it has passed: for operators. Rejects with CandidateNotFoundError, ForeignCandidateError.
   */
  async transferLeadership(
    name: string,
    to: string,
    options: { readonly reason?: string; readonly grace?: number } = {},
  ): Promise<void> {
    checkArguments({ name, to });
    checkOptions(options, ASK_OPTIONS);
    await callIdempotent(this.elections.transfer, { name, to, reason: options.reason ?? "", grace: duration(options.grace) });
  }

  /** Returns the sequence of that name, which need not exist. */
  sequence(name: string): Sequence {
    checkArguments({ name });
    return new Sequence(this.sequences, this.streams, name);
  }

  /**
   * Makes the caller a member of a group, and settles when other callers can see it. Rejects with MemberExistsError, WaitTimeoutError,
   * EnsembleUnreachableError. While the sidecar or the ensemble is away, it tries again, as acquire does. In the body of withLock it joins
   * only while the lock is held, and stays a member after that; otherwise it rejects with GuardLostError (see Lock.guard).
   */
  async join(group: string, member: string, options: JoinOptions = {}): Promise<Membership> {
    checkArguments({ group, member });
    checkOptions(options, JOIN_OPTIONS);
    return answered(options, async (waiting) =>
      throughAbsence(this.streams, waiting, async (attempt) => this.joinOnce(group, member, waiting, attempt)),
    );
  }

  private async joinOnce(group: string, member: string, options: JoinOptions, attempt: Try): Promise<Membership> {
    const { owner = "", metadata = {}, onConflict = "reject", signal } = options;
    const begin = async (lease: Lease): Promise<Membership> => {
      const membership = new Membership(this.streams, this.groups, group, member, lease, options.lease === undefined);
      const waitTimeout = onConflict === "reject" ? undefined : duration(attempt.wait);
      return membership.open(
        {
          group,
          member,
          metadata,
          owner,
          leaseId: lease.id,
          onConflict: conflicts[onConflict],
          waitTimeout,
          keepalive: undefined,
          guards: guardsOf(this.streams),
        },
        signal,
        attempt,
      );
    };
    return options.lease === undefined ? onOwn(this.lease, { ...options, metadata: {} }, attempt, begin) : begin(options.lease);
  }

  /**
   * Stays a member of the group until the signal is aborted, and joins again after its lease was lost. It waits for a previous member of
   * its name to go. Rejects with LostError if it was replaced or removed; with the signal's reason when it has left.
   */
  async stayJoined(
    group: string,
    member: string,
    options: Pick<JoinOptions, "owner" | "metadata"> & {
      readonly signal: AbortSignal;
      readonly onJoined?: (m: Membership) => void;
    },
  ): Promise<never> {
    checkOptions(options, STAY_OPTIONS);
    abortSignal("signal", options.signal);
    const backoff = new Backoff();
    const { signal, onJoined, ...rest } = options;
    for (;;) {
      try {
        const membership = await this.join(group, member, { ...rest, signal, onConflict: "wait" });
        backoff.reset();
        onJoined?.(membership);
        await untilAborted(membership.ended, signal);
        await membership.leave();
      } catch (error) {
        const wanted = error instanceof LostError && !isUnwanted(error.cause) && !this.streams.closed;
        if (!signal.aborted && !wanted && !isTransient(error) && !wasLost(error)) {
          throw error;
        }
      }
      await sleep(backoff.next(), signal);
    }
  }

  /** Returns the members of the group. */
  async getGroup(group: string): Promise<GroupView> {
    checkArguments({ group });
    return groupViewFrom((await callIdempotent(this.groups.get, { group })).view, false);
  }

  /**
   * Yields what getGroup returns, at once and after every change, also across restarts of the sidecar. Stale as in watchLock. The signal
   * ends it.
   */
  watchGroup(group: string, signal?: AbortSignal): AsyncGenerator<GroupView, void> {
    checkArguments({ group, signal });
    return views(
      () => watch(this.groups.watch, { group }),
      ({ view, stale }) => groupViewFrom(view, stale),
      signal,
    );
  }
}

const STAY_OPTIONS = { owner: text, metadata: labels, signal: abortSignal, onJoined: callback };

function isUnwanted(error: SidekeeperError): boolean {
  return error instanceof MemberReplacedError || error instanceof MemberRemovedError;
}

/** Settles with a promise or when the signal is aborted. */
async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done, { once: true });
    void promise.then(done);
    if (signal.aborted) {
      done();
    }
  });
}
