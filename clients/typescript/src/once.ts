/** Work that is done once. */

import { GuardLostError, LostError, OutcomeUnknownError } from "./errors.js";
import type { LockServiceService } from "./gen/sidekeeper/lock/v1/lock.js";
import {
  type BeginRequest,
  type BeginResponse,
  type Begun,
  type FinishRequest,
  type OnceServiceService,
  Per,
  Policy,
  Outcome as WireOutcome,
} from "./gen/sidekeeper/once/v1/once.js";
import { Ticket, guardedByHold } from "./guard.js";
import { type Attempt as Try, type Carrier, GIVE_UP_TIMEOUT, type Kind, type Streams, type Tagged } from "./held.js";
import { type Lease, Leased } from "./lease.js";
import type { LockOptions } from "./lock.js";
import type { Multiplex } from "./multiplex.js";
import { HELD_OPTIONS, type Rules, callback, checkArguments, flag, text, timespan, whole } from "./options.js";
import { type Stub, call, callIdempotent, isTransient } from "./transport.js";
import { type Revocation, contenderFrom, duration, revocationFrom, seconds } from "./types.js";

const LONGEST_NOTE = 256; // bytes

/** How an attempt has ended: the work is done, or it is not and the caller knows that. */
export type Outcome = "succeeded" | "failed";

export const outcomes: Readonly<Record<Outcome, WireOutcome>> = {
  succeeded: WireOutcome.SUCCEEDED,
  failed: WireOutcome.FAILED,
};

/**
 * How to do work once; what has no comment is as in LockOptions. Without any, work that was lost or has failed is repeated, up to three attempts
 * in all. The callbacks are called one at a time, as events arrive.
 */
export interface OnceOptions extends Pick<
  LockOptions,
  "wait" | "owner" | "metadata" | "signal" | "onQueued" | "onSuspended" | "onResumed" | "onRevocation"
> {
  /** Whether the work of different keys does not overlap: its lock is that of the name. By default each key has a lock of its own. */
  readonly perName?: boolean;
  /** For how many seconds the record stands after finish: from 1 to 366 days; by default a week. */
  readonly keep?: number;
  /** Whether no other attempt follows one that was lost. */
  readonly skipLost?: boolean;
  /** Whether no other attempt follows one that has failed. */
  readonly skipFailed?: boolean;
  /** How many attempts the key has at most: 1 to 1,000; by default 3. */
  readonly maxAttempts?: number;
  /** The lease to hold the lock with, of the same client; by default one of its own that ends with the attempt. */
  readonly lease?: Lease;
}

export const ONCE_OPTIONS: Rules<OnceOptions> = {
  perName: flag,
  keep: timespan,
  skipLost: flag,
  skipFailed: flag,
  maxAttempts: whole,
  ...HELD_OPTIONS,
  owner: text,
  onQueued: callback,
  onRevocation: callback,
};

type Event = NonNullable<BeginResponse["event"]>;

/** What attempts of all kinds are told besides their beginning. */
type News = Extract<Event, { $case: "queued" | "suspended" | "resumed" | "revocationRequested" }>;

/** The caller's attempt at work, whose outcome is recorded. Finish it, or release it: then it counts as lost. */
export abstract class Recorded<Request, Event extends Tagged, Granted extends string> extends Leased<Request, Event, Granted> {
  /** Names this attempt in calls made without this package: 32 hexadecimal digits. It is a secret. */
  holdId = "";
  /** Larger than that of every earlier attempt at this work. */
  fencingToken = 0n;
  /** 1 for the first attempt at this work. */
  number = 0;
  /** The latest request to finish soon; undefined if there was none. */
  revocation: Revocation | undefined;

  /** @internal */
  constructor(
    kind: Pick<Kind<Request, Event, Granted>, "streams" | "open" | "granted">,
    locks: Stub<typeof LockServiceService>,
    what: string,
    private readonly lock: string,
    own: Lease | undefined,
    private readonly listeners: Pick<OnceOptions, "lease" | "onQueued" | "onSuspended" | "onResumed" | "onRevocation">,
  ) {
    const giveUp = async (holdId: string): Promise<unknown> => call(locks.release, { holdId, claimId: "" }, GIVE_UP_TIMEOUT);
    super({ ...kind, giveUp, acknowledged: true }, what, listeners.lease, own);
  }

  /** Has the sidecar record the outcome. It is asked again after the errors that `mayNotBeRecorded` names. */
  protected abstract sendFinish(request: FinishRequest): Promise<unknown>;

  /** Takes in what begins it. */
  protected begun({ holdId, fencingToken, attempt }: Pick<Begun, "holdId" | "fencingToken" | "attempt">): string {
    this.holdId = holdId;
    this.fencingToken = fencingToken;
    this.number = attempt;
    return holdId;
  }

  protected override notice(told: Event | undefined): void {
    const event = told as News | undefined;
    const notify = <News>(callback: ((news: News) => void) | undefined, news: News): void =>
      this.kind.streams.notify(this.claim.what, callback, news);
    switch (event?.$case) {
      case "queued":
        notify(this.listeners.onQueued, { position: event.value.position, holders: event.value.holders.map(contenderFrom) });
        break;
      case "suspended":
        notify(this.listeners.onSuspended, seconds(event.value.remaining));
        break;
      case "resumed":
        notify(this.listeners.onResumed, undefined);
        break;
      case "revocationRequested":
        this.revocation = revocationFrom(event.value);
        notify(this.listeners.onRevocation, this.revocation);
    }
  }

  /** What the caller hands on to others, who guard with it what they write for the attempt. */
  ticket(): Ticket {
    return new Ticket(this.lock, this.fencingToken);
  }

  /** Runs body and returns its result. What it writes with the client is guarded with the attempt, as with Lock.guard. */
  guard<T>(body: () => T): T {
    return guardedByHold(this.holdId, this.kind.streams, [this.ticket()], body);
  }

  /** @internal */
  lossIn(error: unknown): LostError | undefined {
    return this.lossOf(this.fencingToken, error);
  }

  /**
   * Says how the attempt has ended, and gives up its lock; for the caller it is over at once. The note is for people: at most 256 bytes of
   * UTF-8.
   *
   * When it settles, this outcome is recorded, even if the lock was lost or released before. With SupersededError it is not, and never will be:
   * the lock was lost, and another attempt has begun since. With AlreadyDoneError another outcome is recorded. After any other SidekeeperError
   * it may be recorded or not, and finish may be called again; it asks again by itself for 10 seconds. The sidecar knows an attempt for ten
   * minutes after its end: later, finish fails.
   */
  async finish(outcome: Outcome, note = ""): Promise<void> {
    checkArguments({ outcome, note });
    await this.giveUpBy(async () => this.record(outcome, note));
  }

  private async record(outcome: Outcome, note: string): Promise<void> {
    this.claim.end();
    let recorded = false;
    try {
      await this.sendFinish({ holdId: this.holdId, outcome: outcomes[outcome], note });
      recorded = true;
    } finally {
      await this.abandon();
      await this.leaveOwn(recorded);
    }
  }

  /** Gives up the attempt, which counts as lost. Errors as of Lock.release. After finish it does nothing, and settles as that did. */
  async release(): Promise<void> {
    await this.giveUp();
  }

  /**
   * Ends the attempt as its body has ended: with an error, or without one. An error changes nothing after the body has ended the attempt
   * itself.
   *
   * @internal
   */
  async leave(failed?: { readonly error: unknown }): Promise<void> {
    if (failed === undefined) {
      await this.finish("succeeded");
    } else if (this.isGivenUp) {
      await this.giveUp();
    } else if (!this.valid || tellsOfLoss(failed.error)) {
      await this.release(); // nothing says how far the body has come
    } else {
      await this.finish("failed", noteOf(failed.error));
    }
  }
}

/** The caller's at work that is done once. Finish it, or release it: then it counts as lost. */
export class Attempt extends Recorded<BeginRequest, Event, "begun"> {
  /** @internal */
  constructor(
    streams: Streams,
    locks: Stub<typeof LockServiceService>,
    private readonly stub: Stub<typeof OnceServiceService>,
    multiplex: Multiplex,
    readonly name: string,
    readonly key: string,
    own: Lease | undefined,
    private readonly options: OnceOptions,
  ) {
    const open = (value: BeginRequest): Carrier<Event> =>
      multiplex.start({ $case: "begin", value }, (event) => (event.$case === "begin" ? event.value.event : undefined));
    const lock = options.perName === true ? name : `${name}/${key}`;
    super({ streams, open, granted: "begun" }, locks, `work ${name} ${key}`, lock, own, options);
  }

  /** @internal */
  async start(attempt: Try): Promise<this> {
    const { perName = false, keep, skipLost, skipFailed, maxAttempts = 0, owner = "", metadata = {}, signal } = this.options;
    const request = {
      name: this.name,
      key: this.key,
      per: perName ? Per.NAME : Per.KEY,
      keep: duration(keep),
      onLoss: policy(skipLost),
      onFailure: policy(skipFailed),
      attempts: maxAttempts,
      leaseId: "",
      waitTimeout: duration(attempt.wait),
      owner,
      metadata,
      keepalive: undefined,
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: Begun }): string {
    return this.begun(value);
  }

  protected override async sendFinish(request: FinishRequest): Promise<unknown> {
    return callIdempotent(this.stub.finish, request, mayNotBeRecorded);
  }
}

/** Whether an outcome may not be recorded although the sidecar was asked. */
export function mayNotBeRecorded(error: unknown): boolean {
  return isTransient(error) || error instanceof OutcomeUnknownError;
}

function policy(skip = false): Policy {
  return skip ? Policy.SKIP : Policy.RETRY;
}

/** Whether an error is a lost hold or guard, or has one as its cause or among its errors. */
function tellsOfLoss(error: unknown, seen = new Set<unknown>()): boolean {
  if (!(error instanceof Error) || seen.has(error)) {
    return false;
  }
  seen.add(error);
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [];
  const lost = error instanceof LostError || error instanceof GuardLostError;
  return lost || [error.cause, ...errors].some((each) => tellsOfLoss(each, seen));
}

/** An error as a note may have it. */
function noteOf(error: unknown): string {
  let said = "it has failed";
  try {
    said = String(error);
  } catch {
    // it cannot be said
  }
  const bytes = new TextEncoder().encode(said.replace(/\p{Cc}/gu, " "));
  return new TextDecoder().decode(bytes.subarray(0, LONGEST_NOTE), { stream: true }); // without half a character
}
