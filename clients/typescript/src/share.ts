/** Work shared out: the caller works on its part of the items of a set. */

import { status } from "@grpc/grpc-js";

import { sleep, unlessAborted } from "./clock.js";
import { AssignmentNotFoundError, InvalidFieldError, LostError, SidekeeperError, named } from "./errors.js";
import type {
  Assigned,
  AssignmentServiceService,
  JoinRequest,
  JoinResponse,
  Joined,
} from "./gen/sidekeeper/assignment/v1/assignment.js";
import { type Attempt, type Carrier, HeldStream, type Streams, throughAbsence } from "./held.js";
import type { Lease, LeaseOptions } from "./lease.js";
import { Lock, type LockOptions, type lockKind, onLease, runHolding } from "./lock.js";
import { type Rules, abortSignal, callback, flag, labels, lease, text, timespan, whole } from "./options.js";
import { type Stub, callIdempotent, isTransient, wasLost } from "./transport.js";
import type { Labels } from "./types.js";

const DRAIN_TIMEOUT = 30;
const SHORTEST_PAUSE = 1;
const LONGEST_PAUSE = 60;

/** Which items the caller shall work on, and how the set is. */
export type Assignment = Readonly<Assigned>;

/** How to share. The callbacks are called one at a time, as events arrive. */
export interface ShareOptions {
  /**
   * The caller's name in the set, one segment. A worker that is started again under its name keeps its items. By default the host's name; in
   * Kubernetes that is the pod's.
   */
  readonly member?: string;
  /** How many items the caller takes at most, 0 to 2,000, in proportion to that of the other members; by default 2,000. */
  readonly capacity?: number;
  /** The lease for the membership and the locks, of the same client; by default one of its own, and after its loss another one. */
  readonly lease?: Lease;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  /** The keys `member` and `capacity` are taken. */
  readonly metadata?: Labels;
  /** Ends it: share rejects with the signal's reason when all handlers have settled. */
  readonly signal?: AbortSignal;
  /** Whether the items move to other members first when the signal is aborted, so that none has to wait for the others. */
  readonly drain?: boolean;
  /** For how many seconds they may do so; by default 30. */
  readonly drainTimeout?: number;
  /** Called whenever the items have changed. */
  readonly onAssigned?: (assignment: Assignment) => void;
  /**
   * Called with an item and what its handler has thrown, or why its lock cannot be had; with an empty name, why the membership was lost. By
   * default that is told to the client's logger. It begins again.
   */
  readonly onError?: (item: string, error: unknown) => void;
}

export const SHARE_OPTIONS: Rules<ShareOptions> = {
  member: text,
  capacity: whole,
  lease,
  owner: text,
  metadata: labels,
  signal: abortSignal,
  drain: flag,
  drainTimeout: timespan,
  onAssigned: callback,
  onError: callback,
};

/** An item that its handler works on, and the hold of its lock. The lock is released when the handler has settled. */
export class Item extends Lock {
  /** @internal */
  constructor(
    kind: ReturnType<typeof lockKind>,
    readonly set: string,
    readonly item: string,
    options: LockOptions,
  ) {
    super(kind, `${set}/${item}`, options, undefined);
  }
}

/** Works on an item until the signal is aborted. */
export type ItemHandler = (item: Item, signal: AbortSignal) => unknown;

/** What a caller of `share` does. */
interface Work {
  readonly streams: Streams;
  readonly locks: ReturnType<typeof lockKind>;
  readonly sets: Stub<typeof AssignmentServiceService>;
  readonly name: string;
  readonly member: string;
  readonly options: ShareOptions;
  readonly handler: ItemHandler;
  readonly openLease: (options: LeaseOptions) => Promise<Lease>;
}

/** Works until the signal is aborted, also across losses of its own lease. */
export async function share(work: Work): Promise<never> {
  const { lease: given, signal, owner = "", metadata = {} } = work.options;
  const pauses = new Pauses();
  for (;;) {
    const began = performance.now();
    try {
      signal?.throwIfAborted();
      const on = given ?? (await work.openLease({ owner, metadata, ...(signal && { signal }) }));
      await takePart(work, on).finally(async () => given ?? on.close().catch((late: unknown) => on.claim.logFailure(late)));
    } catch (error) {
      if (signal?.aborted === true || given !== undefined || work.streams.closed || !sharesAgain(error)) {
        throw error;
      }
      tell(work, "", error);
    }
    await sleep(pauses.after((performance.now() - began) / 1000), signal);
  }
}

/** Whether a caller should join anew, with another lease, after an error. */
function sharesAgain(error: unknown): boolean {
  const exhausted = error instanceof SidekeeperError && error.code === status.RESOURCE_EXHAUSTED;
  return error instanceof LostError || exhausted || isTransient(error) || wasLost(error);
}

/** Is a member until the signal is aborted or the membership is lost. All handlers have settled by then. */
async function takePart(work: Work, on: Lease): Promise<never> {
  const { signal, drain = false } = work.options;
  const waiting = { lease: on, ...(signal && { signal }) };
  const member = await throughAbsence(work.streams, waiting, async (attempt) => new Member(work, on).join(attempt));
  await unlessAborted(member.ended, signal).catch(() => undefined);
  await member.leave(drain && !member.claim.over);
  signal?.throwIfAborted();
  const lost = member.error ?? new LostError(member.claim.what, named("", "the sidecar ended the stream without a reason"));
  throw lost.cause instanceof AssignmentNotFoundError ? lost.cause : lost;
}

function tell({ streams, name, options }: Work, item: string, error: unknown): void {
  if (options.onError === undefined) {
    streams.logger?.error(`share ${name}: it begins again: ${item === "" ? "the membership" : item}`, error);
  } else {
    streams.notify(`share ${name}`, () => options.onError?.(item, error), undefined);
  }
}

type Event = NonNullable<JoinResponse["event"]>;

/** The caller as a member of the set. It has a worker for each of its items, until that worker has ended. */
class Member extends HeldStream<JoinRequest, Event, "joined"> {
  private items: readonly string[] = [];
  private readonly workers = new Map<string, Worker>();
  private leaves = false;
  private changed: () => void = () => undefined;

  constructor(
    private readonly work: Work,
    private readonly lease: Lease,
  ) {
    const multiplex = lease.multiplexOf(work.streams);
    if (multiplex === undefined) {
      throw new RangeError("the lease is another client's");
    }
    const open = (value: JoinRequest): Carrier<Event> =>
      multiplex.start({ $case: "share", value }, (event) => (event.$case === "share" ? event.value.event : undefined));
    super({ streams: work.streams, open, granted: "joined" }, `member ${work.name}/${work.member}`, lease);
    this.claim.onEnd(() => this.giveAllUp());
  }

  async join(attempt: Attempt): Promise<this> {
    const { member, capacity, owner = "", metadata = {}, signal } = this.work.options;
    const about = { capacity, leaseId: "", waitTimeout: undefined, owner, metadata, keepalive: undefined };
    try {
      return await this.open({ set: this.work.name, member: this.work.member, ...about }, signal, attempt);
    } catch (error) {
      if (member === undefined && error instanceof InvalidFieldError && error.fields.some(({ field }) => field === "member")) {
        const why = `give a member: by default the host's name is it, and that cannot be: ${error.message}`;
        throw new RangeError(why, { cause: error });
      }
      throw error;
    }
  }

  protected grant({ value }: { value: Joined }): string {
    return String(value.incarnation);
  }

  protected override notice(event: Event | undefined): void {
    if (event?.$case === "assigned" && !this.leaves) {
      this.assign(event.value.items);
      this.work.streams.notify(this.claim.what, this.work.options.onAssigned, event.value);
    }
  }

  /** Stops the workers of all items but these, and begins one for each that has none. An item whose worker has not ended waits. */
  private assign(items: readonly string[]): void {
    this.items = items;
    const wanted = new Set(items);
    this.workers.forEach((worker, item) => wanted.has(item) || worker.stop());
    for (const item of items) {
      if (!this.workers.has(item)) {
        this.workers.set(item, new Worker(this.work, this.lease, item, () => this.done(item)));
      }
    }
    this.changed();
  }

  private done(item: string): void {
    this.workers.delete(item);
    this.assign(this.items);
  }

  private giveAllUp(): void {
    this.leaves = true;
    this.assign([]);
  }

  /** Leaves the set when all handlers have settled. To drain has all items move first, each as its handler settles. */
  async leave(drain: boolean): Promise<void> {
    if (drain) {
      await this.drain().catch((error: unknown) => tell(this.work, "", error));
    }
    this.giveAllUp();
    await this.untilIdle();
    await this.abandon();
  }

  private async drain(): Promise<void> {
    const { name: set, member, options, sets } = this.work;
    const until = performance.now() + (options.drainTimeout ?? DRAIN_TIMEOUT) * 1000;
    await callIdempotent(sets.setCapacity, { set, member, capacity: 0 });
    await this.untilIdle(until - performance.now());
  }

  /** Settles when there is neither an item nor a worker, or after so many milliseconds. */
  private async untilIdle(timeout?: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.changed = () => this.items.length + this.workers.size === 0 && resolve();
      this.changed();
      timer = timeout === undefined ? undefined : setTimeout(resolve, timeout);
    });
    clearTimeout(timer);
  }
}

/** Takes an item's lock and runs the handler, again and again, until it is told to stop. It ends when the handler has settled. */
class Worker {
  private readonly stopping = new AbortController();
  private run = new AbortController();

  constructor(
    private readonly work: Work,
    private readonly lease: Lease,
    private readonly item: string,
    ended: () => void,
  ) {
    void this.goOn().finally(ended);
  }

  /** Tells the handler to stop; what it has not begun yet is given up. */
  stop(): void {
    this.stopping.abort(new Error(`the item ${this.item} is not the member's any more`));
    this.run.abort(this.stopping.signal.reason);
  }

  private async goOn(): Promise<void> {
    const { signal } = this.stopping;
    for (const pauses = new Pauses(); !signal.aborted;) {
      let lasted = 0;
      try {
        const item = await throughAbsence(this.work.streams, { lease: this.lease, signal }, async (attempt) =>
          this.acquire(attempt),
        );
        const began = performance.now();
        await this.handle(item).finally(() => (lasted = (performance.now() - began) / 1000));
      } catch (error) {
        if (error !== this.run.signal.reason && !(error instanceof LostError) && !this.lease.claim.over) {
          tell(this.work, this.item, error);
        }
      }
      await sleep(pauses.after(lasted), signal).catch(() => undefined);
    }
  }

  private async acquire(attempt: Attempt): Promise<Item> {
    const { locks, name, member, options } = this.work;
    const run = new AbortController();
    this.run = run;
    const onRevocation = (): void => run.abort(new Error(`the release of the item ${this.item} is asked for`));
    const about = {
      owner: options.owner ?? "",
      metadata: { ...options.metadata, member },
      signal: this.stopping.signal,
      onRevocation,
    };
    const item = new Item(onLease(locks, this.lease), name, this.item, { lease: this.lease, ...about });
    return item.acquire(attempt);
  }

  /** Runs the handler while the lock is held. It settles before the lock is released. */
  private async handle(item: Item): Promise<void> {
    const { signal } = this.run;
    await runHolding<Item, unknown>(item, { signal }, (_, stop) => stop.aborted || this.work.handler(item, stop));
  }
}

/** The pauses in seconds between runs: each twice as long as the one before, and the shortest after a run as long as the longest. */
export class Pauses {
  private next = SHORTEST_PAUSE;

  after(lasted: number): number {
    const pause = lasted >= LONGEST_PAUSE ? SHORTEST_PAUSE : this.next;
    this.next = Math.min(2 * pause, LONGEST_PAUSE);
    return pause;
  }
}
