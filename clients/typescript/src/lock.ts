/** Locks. */

import type { Answer } from "./claim.js";
import { failureOf } from "./clock.js";
import { HoldNotFoundError, type LostError, ReleaseUnconfirmedError, SuspendedError, named } from "./errors.js";
import {
  type AcquireRequest,
  type AcquireResponse,
  type CheckedHold,
  type Granted,
  type LockServiceService,
} from "./gen/sidekeeper/lock/v1/lock.js";
import { Ticket, guardedByHold } from "./guard.js";
import { type Attempt, GIVE_UP_TIMEOUT, type HeldStream, type Kind, type Streams, single, throughAbsence } from "./held.js";
import { type Lease, Leased, type Leases, carried, onOwn } from "./lease.js";
import type { Multiplex } from "./multiplex.js";
import {
  HELD_OPTIONS,
  type Rules,
  callback,
  checkArguments,
  checkOptions,
  flag,
  oneOf,
  pick,
  text,
  timespan,
} from "./options.js";
import { KEEPALIVES, LONGEST_TIMER, type Stub, call, start } from "./transport.js";
import {
  type Labels,
  type Mode,
  type Queued,
  type Revocation,
  contenderFrom,
  duration,
  modes,
  revocationFrom,
  seconds,
} from "./types.js";

const MAX_HOLDS_PER_CHECK = 1000;

/** How to acquire a lock. The callbacks are called one at a time, as events arrive. */
export interface LockOptions {
  readonly mode?: Mode;
  /** The lease to hold the lock with; by default one of its own that ends with the lock. */
  readonly lease?: Lease;
  /**
   * Seconds to wait for the grant, and for a sidecar or an ensemble that is away: 0 tries once. By default the grant is waited for without
   * a limit, and a sidecar or an ensemble that is away for 10 seconds each time.
   */
  readonly wait?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /**
   * For how many seconds no caller is granted the lock after this hold, unless it is released: at most 60, and not with read. In this time
   * what the holder has sent before arrives, for resources that cannot compare fencing tokens. By default none.
   */
  readonly lockDelay?: number;
  /**
   * Acquire fails with DeadlockError if `lease` waits in a circle: for a lock whose holder waits for another one, and so on, until one waits
   * for a lock of `lease`. Of those that ask, the one that began to wait last is told, within three seconds. Set it where nothing else goes on
   * with the lease meanwhile: it counts as one caller. Without a lease it does nothing.
   */
  readonly detectDeadlock?: boolean;
  /** Stops the waiting; it does not end a lock that was returned. */
  readonly signal?: AbortSignal;
  readonly onQueued?: (queued: Queued) => void;
  /** Called about once a second while contact with the ensemble is lost and the lock is not, with its validity in seconds. */
  readonly onSuspended?: (remaining: number) => void;
  readonly onResumed?: () => void;
  readonly onRevocation?: (revocation: Revocation) => void;
}

export const LOCK_OPTIONS: Rules<LockOptions> = {
  mode: oneOf(modes),
  ...HELD_OPTIONS,
  owner: text,
  lockDelay: timespan,
  detectDeadlock: flag,
  onQueued: callback,
  onRevocation: callback,
};

/** How to hold a lock while a function runs. */
export interface WithLockOptions extends LockOptions {
  /** For how many seconds the lock may be suspended before the signal is aborted; by default until it is lost. */
  readonly suspensionGrace?: number;
}

type Event = NonNullable<AcquireResponse["event"]>;
type LockKind = Kind<AcquireRequest, Event, "granted">;

/** A granted hold. Release it, even after it was lost. */
export class Lock extends Leased<AcquireRequest, Event, "granted"> {
  /** Names this hold in calls made without this package: 32 hexadecimal digits. It is a secret. */
  holdId = "";
  /** Orders the grants of this lock: pass it to whatever the lock protects, and have that refuse smaller ones. */
  fencingToken = 0n;
  /** The latest request to release the lock; undefined if there was none. */
  revocation: Revocation | undefined;

  /** @internal */
  constructor(
    kind: LockKind,
    readonly name: string,
    private readonly options: LockOptions,
    own: Lease | undefined,
  ) {
    super(kind, `lock ${name}`, options.lease, own);
  }

  /** @internal */
  async acquire(attempt: Attempt): Promise<this> {
    const { lease, mode = "exclusive", owner = "", metadata = {}, lockDelay, detectDeadlock = false, signal } = this.options;
    const request = {
      name: this.name,
      mode: modes[mode],
      leaseId: lease?.id ?? "",
      waitTimeout: duration(attempt.wait),
      owner,
      metadata,
      lockDelay: duration(lockDelay),
      detectDeadlock,
      keepalive: undefined,
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: Granted }): string {
    this.holdId = value.holdId;
    this.fencingToken = value.fencingToken;
    return this.holdId;
  }

  protected override notice(event: Event | undefined): void {
    switch (event?.$case) {
      case "queued":
        this.notify(this.options.onQueued, { position: event.value.position, holders: event.value.holders.map(contenderFrom) });
        break;
      case "suspended":
        this.notify(this.options.onSuspended, seconds(event.value.remaining));
        break;
      case "resumed":
        this.notify(this.options.onResumed, undefined);
        break;
      case "revocationRequested":
        this.revocation = revocationFrom(event.value);
        this.notify(this.options.onRevocation, this.revocation);
    }
  }

  private notify<News>(callback: ((news: News) => void) | undefined, news: News): void {
    this.kind.streams.notify(`lock ${this.name}`, callback, news);
  }

  /** What the holder hands on to others, who guard with it what they write. */
  ticket(): Ticket {
    return new Ticket(this.name, this.fencingToken);
  }

  /**
   * Runs body and returns its result. What it writes with the lock's client is guarded with the lock: put, delete and commit of the
   * configuration, the numbers of a sequence unless they are relaxed, and a member's joining and updates.
   *
   * The ensemble carries that out only while the lock is held, in one transaction with the write, at no cost; otherwise it is
   * GuardLostError, or HoldNotFoundError after the sidecar has restarted. It holds for all that body begins, also after it has settled. What
   * another client writes is not guarded by it: hand on a Ticket.
   */
  guard<T>(body: () => T): T {
    return guardedByHold(this.holdId, this.kind.streams, this.options.mode === "read" ? [] : [this.ticket()], body);
  }

  /**
   * The loss that an error of the body tells of, unless the body has released the lock: a write may meet the loss first.
   *
   * @internal
   */
  lossIn(error: unknown): LostError | undefined {
    return this.lossOf(this.fencingToken, error);
  }

  /**
   * Releases the lock. For the caller it ends at once; when this settles, the next waiter can be granted it.
   *
   * Rejects with LostError if the lock was lost before, and with ReleaseUnconfirmedError if the sidecar has not confirmed the release: for
   * the caller the lock has ended all the same, and for others it ends at the latest when its validity would have. Calling it again has
   * the same outcome.
   */
  async release(): Promise<void> {
    await this.giveUp();
  }
}

/**
 * Acquires a lock, also from a sidecar that is away for a time. Without a lease it gets one of its own, which may outlive the sidecar's
 * process; where none does, its stream is its lease, which costs a message less.
 */
export async function acquire(kind: LockKind, leases: Leases | undefined, name: string, options: LockOptions): Promise<Lock> {
  return throughAbsence(kind.streams, options, async (attempt) => {
    const begin = async (own?: Lease): Promise<Lock> =>
      new Lock(onLease(kind, own ?? options.lease), name, options, own).acquire(attempt);
    return leases === undefined || options.lease !== undefined ? begin() : onOwn(leases, options, attempt, begin);
  });
}

/** How locks are held on a lease. */
export function onLease(kind: LockKind, lease: Lease | undefined): LockKind {
  return carried(kind, lease, startOn);
}

function startOn(multiplex: Multiplex): LockKind["open"] {
  return (request) =>
    multiplex.start({ $case: "acquire", value: { ...request, leaseId: "" } }, (event) =>
      event.$case === "acquire" ? event.value.event : undefined,
    );
}

/** What a body may hold. */
interface Holding {
  /** @internal */
  readonly claim: HeldStream<never, never, never>["claim"];
  readonly error: LostError | undefined;
  readonly suspended: boolean;
  onSuspension: (suspended: boolean) => void;
  release(): Promise<void>;
  /** @internal */
  lossIn?(error: unknown): LostError | undefined;
  /** @internal Ends it as the body has ended, where that is more than to release it. */
  leave?(failed?: { readonly error: unknown }): Promise<void>;
  guard?<T>(body: () => T): T;
}

/** What only those options have that are for a body. */
interface Limits {
  readonly suspensionGrace?: number;
}

/** Acquires something and runs a body while it is held; if the options or the body are wrong, nothing is acquired. */
export async function withHeld<H extends Holding, O extends { readonly signal?: AbortSignal }, T>(
  acquire: (options: O) => Promise<H>,
  rules: Rules<O>,
  options: O & Limits,
  body: (held: H, signal: AbortSignal) => Promise<T> | T,
): Promise<T> {
  checkOptions<O & Limits>(options, { ...rules, suspensionGrace: timespan } as Rules<O & Limits>);
  checkArguments({ body });
  return runHolding(await acquire(pick(options, rules)), options, body);
}

/** Runs a body while something is held, with a signal that is aborted when the body should stop, and releases it. */
export async function runHolding<H extends Holding, T>(
  held: H,
  { signal, suspensionGrace }: { readonly signal?: AbortSignal; readonly suspensionGrace?: number },
  body: (held: H, signal: AbortSignal) => Promise<T> | T,
): Promise<T> {
  const stop = new AbortController();
  const abort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted === true) {
    abort();
  }
  held.claim.onEnd(() => stop.abort(held.error));
  let timer: NodeJS.Timeout | undefined;
  held.onSuspension = (suspended) => {
    clearTimeout(timer);
    if (suspended && suspensionGrace !== undefined) {
      const error = new SuspendedError(`${held.claim.what} has been suspended for ${suspensionGrace} s`);
      timer = setTimeout(() => stop.abort(error), Math.min(suspensionGrace * 1000, LONGEST_TIMER));
    }
  };
  held.onSuspension(held.suspended);
  const run = (): Promise<T> | T => body(held, stop.signal);
  try {
    return await runAndRelease(held, stop.signal, () => (held.guard === undefined ? run() : held.guard(run)));
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/**
 * Runs a body and releases what it holds, whatever the body does. A body that failed fails with its own error, or with why its signal was aborted
 * if it has failed for that.
 */
async function runAndRelease<T>(held: Holding, signal: AbortSignal, body: () => Promise<T> | T): Promise<T> {
  let result: T;
  try {
    result = await body();
  } catch (error) {
    const failure = held.lossIn?.(error) ?? failureOf(error, signal);
    await (held.leave?.({ error: failure }) ?? held.release()).catch((late: unknown) => held.claim.logFailure(late));
    throw failure;
  }
  try {
    await (held.leave?.() ?? held.release());
  } catch (error) {
    if (error instanceof ReleaseUnconfirmedError) {
      error.result = result;
    }
    throw error;
  }
  return result;
}

export function lockKind(streams: Streams, stub: Stub<typeof LockServiceService>): LockKind {
  return {
    streams,
    open: (request) => single(start(stub.acquire, { ...request, keepalive: KEEPALIVES })),
    granted: "granted",
    giveUp: async (holdId) => call(stub.release, { holdId, claimId: "" }, GIVE_UP_TIMEOUT),
    checker: streams.checker(async (ids, timeout) => {
      const answers: [string, Answer][] = [];
      for (let first = 0; first < ids.length; first += MAX_HOLDS_PER_CHECK) {
        answers.push(...(await checkSome(stub, ids.slice(first, first + MAX_HOLDS_PER_CHECK), timeout)));
      }
      return new Map(answers);
    }),
    acknowledged: true,
  };
}

/** Asks about each hold alone if one of them is unknown: the sidecar does not say which. */
async function checkSome(stub: Stub<typeof LockServiceService>, ids: string[], timeout: number): Promise<Map<string, Answer>> {
  try {
    const { holds } = await call(stub.check, { holdIds: ids, claimIds: [] }, timeout);
    return new Map(holds.map((hold) => [hold.holdId, answerFrom(hold)]));
  } catch (error) {
    if (!(error instanceof HoldNotFoundError)) {
      throw error;
    }
    if (ids.length === 1) {
      return new Map(ids.map((id) => [id, { validFor: 0, end: error }]));
    }
    const each = new Map<string, Answer>();
    for (const id of ids) {
      for (const [one, answer] of await checkSome(stub, [id], timeout)) {
        each.set(one, answer);
      }
    }
    return each;
  }
}

function answerFrom(hold: CheckedHold): Answer {
  switch (hold.reason) {
    case "":
      return { validFor: seconds(hold.validFor) };
    case "RELEASED":
      return { validFor: 0, givenUp: true };
    default:
      return { validFor: 0, end: named(hold.reason, "the sidecar reports that it has ended") };
  }
}
