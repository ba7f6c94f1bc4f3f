/** Permits of semaphores. */

import type { Contender } from "./gen/sidekeeper/hold/v1/hold.js";
import {
  type AcquireRequest,
  type AcquireResponse,
  type Granted,
  type SemaphoreServiceService,
  type View,
} from "./gen/sidekeeper/semaphore/v1/semaphore.js";
import { type Attempt, type Carrier, GIVE_UP_TIMEOUT, type Streams } from "./held.js";
import { type Lease, Leased } from "./lease.js";
import type { Multiplex } from "./multiplex.js";
import { HELD_OPTIONS, type Rules, callback, flag, text, timespan, whole } from "./options.js";
import { type Stub, call } from "./transport.js";
import { type Labels, type Revocation, duration, revocationFrom, seconds } from "./types.js";

/** How to acquire permits. The callbacks are called one at a time, as events arrive. */
export interface PermitsOptions {
  /** How many, all at once: 1 to 64; by default 1. */
  readonly permits?: number;
  /** Whether the permit bears a number: see Permits.number. It goes with one permit. */
  readonly numbered?: boolean;
  /**
   * For how many seconds the number rests if it is lost: up to 24 hours; by default 1 minute. A number that its holder releases is free at
   * once.
   */
  readonly quarantine?: number;
  /** The lease to hold the permits with, of the same client; by default one of their own that ends with them. */
  readonly lease?: Lease;
  /** As in LockOptions. */
  readonly wait?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Stops the waiting; it does not end permits that were returned. */
  readonly signal?: AbortSignal;
  /** Called with how many wait ahead, 0 for the first, who waits for free permits; and whenever that changes. */
  readonly onQueued?: (position: number) => void;
  /** Called about once a second while contact with the ensemble is lost and the permits are not, with their validity in seconds. */
  readonly onSuspended?: (remaining: number) => void;
  readonly onResumed?: () => void;
  readonly onRevocation?: (revocation: Revocation) => void;
}

export const PERMITS_OPTIONS: Rules<PermitsOptions> = {
  permits: whole,
  numbered: flag,
  quarantine: timespan,
  ...HELD_OPTIONS,
  owner: text,
  onQueued: callback,
  onRevocation: callback,
};

/** How to hold permits while a function runs. */
export interface WithPermitsOptions extends PermitsOptions {
  /** For how many seconds the permits may be suspended before the signal is aborted; by default until they are lost. */
  readonly suspensionGrace?: number;
}

type Event = NonNullable<AcquireResponse["event"]>;

/** What the caller holds of a semaphore. Release it, even after it was lost. */
export class Permits extends Leased<AcquireRequest, Event, "granted"> {
  /** Tells these permits from all others of the semaphore. It is no fencing token: others hold permits at the same time. */
  token = 0n;
  /**
   * The number that the permit bears, from 0 to the semaphore's limit - 1; undefined without `numbered`. No other caller has it while the
   * permit is valid: ask `valid` before each use. Do not keep it after the loss.
   */
  number: number | undefined;
  /** The latest request to release the permits; undefined if there was none. */
  revocation: Revocation | undefined;

  /** @internal */
  constructor(
    streams: Streams,
    stub: Stub<typeof SemaphoreServiceService>,
    multiplex: Multiplex,
    readonly semaphore: string,
    own: Lease | undefined,
    private readonly options: PermitsOptions,
  ) {
    const open = (value: AcquireRequest): Carrier<Event> =>
      multiplex.start({ $case: "acquirePermits", value }, (event) =>
        event.$case === "acquirePermits" ? event.value.event : undefined,
      );
    const giveUp = async (holdId: string): Promise<unknown> => call(stub.release, { holdId }, GIVE_UP_TIMEOUT);
    super({ streams, open, granted: "granted", giveUp, acknowledged: true }, `permits of ${semaphore}`, options.lease, own);
  }

  /** @internal */
  async acquire(attempt: Attempt): Promise<this> {
    const { permits = 1, numbered = false, quarantine, owner = "", metadata = {}, signal } = this.options;
    const request = {
      name: this.semaphore,
      permits,
      leaseId: "",
      waitTimeout: duration(attempt.wait),
      owner,
      metadata,
      keepalive: undefined,
      numbered,
      quarantine: duration(quarantine),
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: Granted }): string {
    this.token = value.token;
    this.number = value.number;
    return value.holdId;
  }

  protected override notice(event: Event | undefined): void {
    const notify = <News>(callback: ((news: News) => void) | undefined, news: News): void =>
      this.kind.streams.notify(`permits of ${this.semaphore}`, callback, news);
    switch (event?.$case) {
      case "queued":
        notify(this.options.onQueued, event.value.position);
        break;
      case "suspended":
        notify(this.options.onSuspended, seconds(event.value.remaining));
        break;
      case "resumed":
        notify(this.options.onResumed, undefined);
        break;
      case "revocationRequested":
        this.revocation = revocationFrom(event.value);
        notify(this.options.onRevocation, this.revocation);
    }
  }

  /** Releases all of the permits. For the caller they end at once; when this settles, others can be granted them. Errors as of Lock.release. */
  async release(): Promise<void> {
    await this.giveUp();
  }
}

/** A holder of permits, or a waiter for some. */
export interface PermitContender {
  /** That it holds; 0 if it waits. */
  readonly permits: number;
  readonly owner: string;
  readonly metadata: Labels;
  /** Of its permits; 0 if it waits. */
  readonly token: bigint;
  /** Seconds for which it has held its permits, or waits, by the ensemble's clock. */
  readonly age: number;
  /** Whether it was made by another client of the ensemble, not by Sidekeeper. */
  readonly foreign: boolean;
  /** Of its caller, as the sidecar that made it verified it; empty where callers are not told apart. */
  readonly identity: string;
  /** That its permit bears; undefined of one without a number, and while it waits. */
  readonly number: number | undefined;
  /** Whether another caller has asked it to release its permits. */
  readonly revocationRequested: boolean;
}

/** A number that was lost, and that no caller gets for a while. */
export interface Quarantine {
  readonly number: number;
  /** When it ends; undefined if it begins only when the next caller wants a number. */
  readonly until: Date | undefined;
}

/** The holders and waiters of a semaphore, in order. */
export interface SemaphoreView {
  readonly name: string;
  /** How many permits there are. */
  readonly limit: number;
  /** How many of them are held; more than limit after it has shrunk. */
  readonly held: number;
  readonly holders: readonly PermitContender[];
  readonly waiters: readonly PermitContender[];
  /** How many more wait that are not shown, because there are too many for one message. */
  readonly waitersOmitted: number;
  /** The numbers that no permit bears and that rest, in order. */
  readonly quarantines: readonly Quarantine[];
  /** From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date. */
  readonly stale: boolean;
}

export function semaphoreViewFrom(wire: View | undefined, stale = false): SemaphoreView {
  return {
    name: wire?.name ?? "",
    limit: wire?.limit ?? 0,
    held: wire?.held ?? 0,
    holders: (wire?.holders ?? []).map(contenderFrom),
    waiters: (wire?.waiters ?? []).map(contenderFrom),
    waitersOmitted: wire?.waitersOmitted ?? 0,
    quarantines: (wire?.quarantines ?? []).map(({ number, until }) => ({ number, until })),
    stale,
  };
}

function contenderFrom(wire: Contender): PermitContender {
  const { owner, metadata, token, foreign, identity, number, revocationRequested } = wire;
  return {
    permits: wire.permits ?? 0,
    owner,
    metadata,
    token,
    age: seconds(wire.age),
    foreign,
    identity,
    number,
    revocationRequested,
  };
}
