/** Several locks at once. */

import type { LostError } from "./errors.js";
import type {
  AcquireAllRequest,
  AcquireAllResponse,
  AllGranted,
  AllQueued,
  LockServiceService,
} from "./gen/sidekeeper/lock/v1/lock.js";
import { Ticket, guardedByHold } from "./guard.js";
import { type Attempt, type Kind, single, throughAbsence } from "./held.js";
import { type Lease, Leased, type Leases, carried, onOwn } from "./lease.js";
import type { LockOptions, lockKind } from "./lock.js";
import type { Multiplex } from "./multiplex.js";
import { HELD_OPTIONS, type Rules, callback, checkArguments, checkOptions, oneOf, text } from "./options.js";
import { KEEPALIVES, type Stub, start } from "./transport.js";
import { type Mode, type Revocation, duration, modes, revocationFrom, seconds } from "./types.js";

/** One of several locks that are acquired at once. */
export interface WantedLock {
  readonly name: string;
  readonly mode?: Mode;
}

/** How to acquire several locks at once; what has no comment is as in LockOptions. The callbacks are called one at a time, as events arrive. */
export interface AllOptions extends Pick<
  LockOptions,
  "wait" | "owner" | "metadata" | "signal" | "onSuspended" | "onResumed" | "onRevocation"
> {
  /** The lease to hold the locks with, of the same client; by default one of their own that ends with them. */
  readonly lease?: Lease;
  /** Called with how many are ahead, at least 1, by the names of the locks that are still waited for; and whenever that changes. */
  readonly onQueued?: (ahead: ReadonlyMap<string, number>) => void;
}

const WANTED_LOCK: Rules<WantedLock> = { name: text, mode: oneOf(modes) };

export const ALL_OPTIONS: Rules<AllOptions> = { ...HELD_OPTIONS, owner: text, onQueued: callback, onRevocation: callback };

/** How to hold several locks while a function runs. */
export interface WithLocksOptions extends AllOptions {
  /** For how many seconds the locks may be suspended before the signal is aborted; by default until they are lost. */
  readonly suspensionGrace?: number;
}

type Event = NonNullable<AcquireAllResponse["event"]>;
type LocksKind = Kind<AcquireAllRequest, Event, "granted">;

/** Several locks that are held as one hold: what ends one ends all. Release them, even after they were lost. */
export class Locks extends Leased<AcquireAllRequest, Event, "granted"> {
  /** The names of the locks, as they were asked for. */
  readonly names: readonly string[];
  /** Names the one hold in calls made without this package: 32 hexadecimal digits. It is a secret. */
  holdId = "";
  /** Of each lock, by its name; see Lock.fencingToken. */
  fencingTokens: ReadonlyMap<string, bigint> = new Map();
  /** The latest request to release any of the locks, which asks for all; undefined if there was none. */
  revocation: Revocation | undefined;

  /** @internal */
  constructor(
    kind: LocksKind,
    private readonly wanted: readonly WantedLock[],
    private readonly options: AllOptions,
    own: Lease | undefined,
  ) {
    const names = wanted.map(({ name }) => name);
    super(kind, `locks ${names.join(", ")}`, options.lease, own);
    this.names = names;
  }

  /** @internal */
  async acquire(attempt: Attempt): Promise<this> {
    const { lease, owner = "", metadata = {}, signal } = this.options;
    const locks = this.wanted.map(({ name, mode = "exclusive" }) => ({ name, mode: modes[mode] }));
    const request = {
      locks,
      leaseId: lease?.id ?? "",
      waitTimeout: duration(attempt.wait),
      owner,
      metadata,
      keepalive: undefined,
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: AllGranted }): string {
    this.holdId = value.holdId;
    this.fencingTokens = new Map(value.locks.map(({ name, fencingToken }) => [name, fencingToken]));
    return this.holdId;
  }

  protected override notice(event: Event | undefined): void {
    const { onQueued, onSuspended, onResumed, onRevocation } = this.options;
    switch (event?.$case) {
      case "queued":
        this.notify(onQueued, aheadIn(event.value));
        break;
      case "suspended":
        this.notify(onSuspended, seconds(event.value.remaining));
        break;
      case "resumed":
        this.notify(onResumed, undefined);
        break;
      case "revocationRequested":
        this.revocation = revocationFrom(event.value);
        this.notify(onRevocation, this.revocation);
    }
  }

  private notify<News>(callback: ((news: News) => void) | undefined, news: News): void {
    this.kind.streams.notify(this.claim.what, callback, news);
  }

  /** What the holder hands on to others, who guard with them what they write; in the order of the names. */
  tickets(): Ticket[] {
    return this.names.map((name) => new Ticket(name, this.fencingTokens.get(name) ?? 0n));
  }

  /** Runs body and returns its result. What it writes with the locks' client is guarded with all of them, as with Lock.guard. */
  guard<T>(body: () => T): T {
    const exclusive = this.tickets().filter((_, i) => this.wanted[i]?.mode !== "read");
    return guardedByHold(this.holdId, this.kind.streams, exclusive, body);
  }

  /** @internal */
  lossIn(error: unknown): LostError | undefined {
    return this.lossOf(this.tickets()[0]?.fencingToken, error); // which is that of all
  }

  /** Releases all of the locks. For the caller they end at once; when this settles, the next waiters can be granted them. Errors as of Lock.release. */
  async release(): Promise<void> {
    await this.giveUp();
  }
}

function aheadIn({ locks }: AllQueued): ReadonlyMap<string, number> {
  return new Map(locks.map(({ name, position }) => [name, position]));
}

/** Acquires several locks at once, as `acquire` does one. */
export async function acquireAll(
  kind: LocksKind,
  leases: Leases | undefined,
  locks: readonly (string | WantedLock)[],
  options: AllOptions,
): Promise<Locks> {
  checkArguments({ locks });
  const wanted = locks.map((lock) => (typeof lock === "string" ? { name: lock } : lock));
  for (const lock of wanted) {
    checkOptions(lock, WANTED_LOCK);
    checkArguments({ name: lock.name });
  }
  return throughAbsence(kind.streams, options, async (attempt) => {
    const begin = async (own?: Lease): Promise<Locks> =>
      new Locks(carried(kind, own ?? options.lease, startOn), wanted, options, own).acquire(attempt);
    return leases === undefined || options.lease !== undefined ? begin() : onOwn(leases, options, attempt, begin);
  });
}

function startOn(multiplex: Multiplex): LocksKind["open"] {
  return (request) =>
    multiplex.start({ $case: "acquireAll", value: { ...request, leaseId: "" } }, (event) =>
      event.$case === "acquireAll" ? event.value.event : undefined,
    );
}

/** How several locks are held: as one is, whose calls know the one hold of all. */
export function locksKind(one: ReturnType<typeof lockKind>, stub: Stub<typeof LockServiceService>): LocksKind {
  return { ...one, open: (request) => single(start(stub.acquireAll, { ...request, keepalive: KEEPALIVES })) };
}
