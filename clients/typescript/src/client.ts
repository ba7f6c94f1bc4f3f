/** The client: leases, locks and memberships, and the way to everything else. */

import { type ChannelCredentials, type ClientReadableStream, type Client as Channel, status } from "@grpc/grpc-js";

import { type Answer, Claim, Keeper } from "./claim.js";
import { sleep } from "./clock.js";
import { Config } from "./config.js";
import {
  HoldNotFoundError,
  LostError,
  MemberRemovedError,
  MemberReplacedError,
  SidekeeperError,
  SuspendedError,
  named,
} from "./errors.js";
import { ConfigServiceService } from "./gen/sidekeeper/config/v1/config.js";
import { LeaseServiceService, type OpenRequest, type OpenResponse } from "./gen/sidekeeper/lease/v1/lease.js";
import { type AcquireResponse, type CheckedHold, LockServiceService } from "./gen/sidekeeper/lock/v1/lock.js";
import { type JoinRequest, type JoinResponse, MembershipServiceService } from "./gen/sidekeeper/membership/v1/membership.js";
import { SequenceServiceService } from "./gen/sidekeeper/sequence/v1/sequence.js";
import { Sequence } from "./sequence.js";
import {
  Pause,
  type Stub,
  type Unary,
  ask,
  insist,
  isTransient,
  listen,
  openChannel,
  reopened,
  start,
  stubOf,
  wasLost,
} from "./transport.js";
import {
  type Contender,
  type GroupView,
  type Labels,
  type LockView,
  type Mode,
  type OnConflict,
  type Queued,
  type Revocation,
  conflicts,
  contenderFrom,
  duration,
  groupViewFrom,
  lockViewFrom,
  modes,
  seconds,
} from "./types.js";

const GIVE_UP_ATTEMPTS = 3;
const GIVE_UP_PATIENCE = 5;
const MOST_HOLDS = 1000;

/** Where a client says what it does in the background; the console is one, and loggers of most libraries are. */
export interface Logger {
  /** The sidecar could not be asked for how long something is valid. What is not confirmed in time ends. */
  debug(message: string, error: unknown): void;
  /** A callback of the caller's has thrown. */
  error(message: string, error: unknown): void;
}

/** How to reach the sidecar. */
export interface ClientOptions {
  /**
   * `unix:///path`, a path, or `host:port`; omitted, what SIDEKEEPER_ADDRESS says, and without that
   * `unix:///run/sidekeeper/sidekeeper.sock`.
   */
  readonly address?: string;
  /** Of TLS, from `credentials.createSsl` of @grpc/grpc-js. Addresses that are neither a Unix socket nor loopback need them. */
  readonly credentials?: ChannelCredentials;
  /** Told of what goes wrong in the background; omitted, nobody is. */
  readonly logger?: Logger;
}

/** How to open a lease. */
export interface LeaseOptions {
  /** Seconds that the ensemble keeps it when it hears nothing of it; omitted, what the sidecar is set to. */
  readonly ttl?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Gives up the waiting, and not a lease that was handed out. */
  readonly signal?: AbortSignal;
}

/** How to acquire a lock. The functions are called one at a time, as the events come. */
export interface LockOptions {
  readonly mode?: Mode;
  /** To hold the lock with; omitted, a lease that lives as long as the lock. */
  readonly lease?: Lease;
  /** Seconds to wait for the grant: 0 tries once, omitted waits for ever. */
  readonly wait?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Gives up the waiting, and not a lock that was handed out. */
  readonly signal?: AbortSignal;
  readonly onQueued?: (queued: Queued) => void;
  /** Contact with the ensemble is lost, the lock is not; gets the seconds it certainly lasts, about once a second. */
  readonly onSuspended?: (remaining: number) => void;
  readonly onResumed?: () => void;
  readonly onRevocation?: (revocation: Revocation) => void;
}

/** How to hold a lock while a function runs. */
export interface WithLockOptions extends LockOptions {
  /** For how many seconds the lock may be suspended until the function is told to stop; omitted, until it is lost. */
  readonly suspensionGrace?: number;
}

/** How to join a group. */
export interface JoinOptions {
  /** To be a member with; omitted, a lease that lives as long as the membership. */
  readonly lease?: Lease;
  readonly owner?: string;
  /** What others shall know, such as an address. */
  readonly metadata?: Labels;
  /** Omitted, reject. */
  readonly onConflict?: OnConflict;
  /** With wait and replace: for how many seconds; omitted, for ever. */
  readonly wait?: number;
  /** Gives up the waiting, and not a membership that was handed out. */
  readonly signal?: AbortSignal;
}

/** What is the same for locks, leases and memberships. */
abstract class Held<Event> implements AsyncDisposable {
  /** @internal */
  readonly claim: Claim;
  private readonly controller = new AbortController();
  private settle: () => void = () => undefined;
  private readonly followed = new Promise<void>((resolve) => {
    this.settle = resolve;
  });

  /** @internal */
  constructor(
    protected readonly client: Client,
    what: string,
  ) {
    this.claim = new Claim(what);
    this.claim.whenOver(() => this.controller.abort(this.claim.lost ?? new Error(`${what} was given up`)));
  }

  /** Whether it is certainly the caller's at this moment. */
  get valid(): boolean {
    return this.validFor > 0;
  }

  /** For how many seconds it is certainly still the caller's if the sidecar is not heard of again; 0 if it is not. */
  get validFor(): number {
    return this.claim.validFor();
  }

  /** Whether the sidecar has lost contact with the ensemble and not regained it yet. */
  get suspended(): boolean {
    return this.claim.suspended;
  }

  /** Why it was lost, as soon as it is not valid any more; undefined before that, and if it was given up. */
  get error(): LostError | undefined {
    return this.claim.lost;
  }

  /** Aborted when it is the caller's no more: with LostError as its reason if it was lost. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Settled when it is the caller's no more: lost, or given up. */
  get ended(): Promise<void> {
    return this.claim.ended;
  }

  abstract [Symbol.asyncDispose](): Promise<void>;

  /** Reads the stream until its end, which is the end of the claim. Settled when the first event of interest has come. */
  protected async follow(
    open: () => ClientReadableStream<Event>,
    begun: (event: Event) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    signal?.throwIfAborted();
    const stream = open();
    this.claim.cut = () => stream.cancel();
    this.client.streams.add(stream);
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        reject(signal?.reason as Error);
        stream.cancel();
      };
      signal?.addEventListener("abort", abort, { once: true });
      listen(
        stream,
        (event) => {
          if (begun(event)) {
            signal?.removeEventListener("abort", abort);
            resolve();
          }
        },
        (error) => {
          this.client.streams.delete(stream);
          reject(error ?? new SidekeeperError(status.UNAVAILABLE, { message: "the sidecar ended the stream without a word" }));
          if (error === undefined) {
            this.claim.end();
          } else {
            this.claim.lose(error);
          }
          this.settle();
        },
      );
    });
  }

  /**
   * Gives it up without a word, when it was not handed out yet, and says what to reject with. What has ended it, or what it stands on,
   * stands in for the error of its stream, which was cut for it: nothing was the caller's yet, so that nothing was lost.
   */
  protected refused(error: unknown): unknown {
    const { lost } = this.claim;
    this.claim.abandon();
    return error instanceof SidekeeperError ? (lost?.cause ?? error) : error;
  }

  /** @internal Gives it up without a word, when it was not handed out yet. */
  async abandon(): Promise<void> {
    this.claim.abandon();
    await this.followed;
  }

  /** Has the sidecar confirm that it is given up. Rejects with LostError if it was lost before. */
  protected async confirm<Request, Reply>(method: Unary<Request, Reply>, request: Request): Promise<void> {
    this.claim.end();
    try {
      if (this.claim.lost !== undefined) {
        throw this.claim.lost;
      }
      await this.askToTakeBack(method, request);
    } finally {
      await this.abandon();
    }
  }

  private async askToTakeBack<Request, Reply>(method: Unary<Request, Reply>, request: Request): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await ask(method, request, GIVE_UP_PATIENCE);
        return;
      } catch (error) {
        if (!(error instanceof SidekeeperError)) {
          throw error;
        }
        if (error.code === status.ABORTED) {
          throw new LostError(this.claim.what, error);
        }
        const unanswered = error.code === status.UNAVAILABLE || error.code === status.DEADLINE_EXCEEDED;
        if (error.reason !== "" || !unanswered || attempt === GIVE_UP_ATTEMPTS) {
          throw error;
        }
        await sleep(0.05 + Math.random() / 20);
      }
    }
  }
}

/** Owns what is acquired in its name: when it ends, all of that is given up at once. Close it, also after it was lost. */
export class Lease extends Held<OpenResponse> {
  /** Names it in calls made without this package. It is a secret. */
  id = "";
  /** The timeout in seconds that the ensemble granted. */
  ttl = 0;
  private closing: Promise<void> | undefined;

  /** @internal */
  async open(request: OpenRequest, signal: AbortSignal | undefined): Promise<this> {
    try {
      await this.follow(
        () => start(this.client.leases.open, request),
        (e) => this.hear(e),
        signal,
      );
      await this.client.terms.begin(this.id, this.claim);
      signal?.throwIfAborted();
      return this;
    } catch (error) {
      throw this.refused(error);
    }
  }

  private hear({ event }: OpenResponse): boolean {
    if (event?.$case === "opened" && this.id === "") {
      this.id = event.value.leaseId;
      this.ttl = seconds(event.value.ttl);
      return true;
    }
    if (event?.$case === "suspended" || event?.$case === "resumed") {
      this.claim.suspended = event.$case === "suspended";
    }
    return false;
  }

  /** @internal Why it has ended. */
  why(): SidekeeperError {
    return this.claim.lost?.cause ?? named("LEASE_CLOSED", "the lease is closed");
  }

  /**
   * Ends the lease; for the caller, it and all acquired in its name are over at once. Then all of it is gone from the ensemble. Rejects
   * with LostError if it was lost before. Again, it does the same.
   */
  async close(): Promise<void> {
    this.closing ??= this.confirm(this.client.leases.close, { leaseId: this.id });
    await this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A hold. Release it, also after it was lost. */
export class Lock extends Held<AcquireResponse> {
  /** What Check and Release call this hold. It is a secret. */
  holdId = "";
  /** Orders the grants of this lock: hand it to whatever the lock protects, and let that refuse smaller ones. */
  fencingToken = 0n;
  /** The newest request to let go, if there was one. */
  revocation: Revocation | undefined;
  /** @internal Is told when the suspension begins and ends. */
  whenSuspended: (suspended: boolean) => void = () => undefined;
  private releasing: Promise<void> | undefined;

  /** @internal */
  constructor(
    client: Client,
    readonly name: string,
    private readonly options: LockOptions,
  ) {
    super(client, `lock ${name}`);
  }

  /** @internal */
  async acquire(): Promise<this> {
    const { lease, signal } = this.options;
    this.claim.whenOver(() => this.acknowledge());
    try {
      await this.follow(
        () => this.start(lease),
        (event) => this.hear(event),
        signal,
      );
      await this.client.holds.begin(this.holdId, this.claim);
      signal?.throwIfAborted();
      return this;
    } catch (error) {
      throw this.refused(error);
    }
  }

  /**
   * Tells the sidecar that a hold which ended otherwise than by the caller's hand is counted on no more: until then its place may be kept
   * for it.
   */
  private acknowledge(): void {
    const { lease } = this.options;
    const closed = lease?.claim.over === true && lease.error === undefined;
    if (this.holdId !== "" && !closed && this.error !== undefined) {
      this.client.acknowledge(this.holdId);
    }
  }

  private start(lease: Lease | undefined): ClientReadableStream<AcquireResponse> {
    const { mode = "exclusive", owner = "", metadata = {}, wait } = this.options;
    const request = {
      name: this.name,
      mode: modes[mode],
      leaseId: lease?.id ?? "",
      waitTimeout: duration(wait),
      owner,
      metadata,
    };
    const stream = start(this.client.locks.acquire, request);
    if (lease !== undefined) {
      this.claim.cut = () => stream.cancel();
      this.claim.standOn(lease.claim, () => this.claim.lose(lease.why()));
    }
    return stream;
  }

  private hear({ event }: AcquireResponse): boolean {
    switch (event?.$case) {
      case "queued":
        this.tell(this.options.onQueued, { position: event.value.position, holders: event.value.holders.map(contenderFrom) });
        return false;
      case "granted":
        this.holdId = event.value.holdId;
        this.fencingToken = event.value.fencingToken;
        return true;
      case "suspended":
        if (!this.claim.suspended) {
          this.claim.suspended = true;
          this.whenSuspended(true);
        }
        this.tell(this.options.onSuspended, seconds(event.value.remaining));
        return false;
      case "resumed":
        this.claim.suspended = false;
        this.whenSuspended(false);
        this.tell(this.options.onResumed, undefined);
        return false;
      case "revocationRequested": {
        const { requestedBy, reason, grace } = event.value;
        this.revocation = { requestedBy, reason, grace: grace === undefined ? undefined : seconds(grace) };
        this.tell(this.options.onRevocation, this.revocation);
        return false;
      }
      default:
        return false;
    }
  }

  /** A callback that throws harms nobody's lock. */
  private tell<What>(callback: ((what: What) => void) | undefined, what: What): void {
    try {
      callback?.(what);
    } catch (error) {
      this.client.logger?.error(`a callback of lock ${this.name} failed`, error);
    }
  }

  /**
   * Gives the lock up; for the caller it is over at once, and when this settles the next waiter can have it.
   *
   * Rejects with LostError if it was lost before. Any SidekeeperError says that the sidecar has not confirmed it: then it is over for
   * the caller all the same, and for others by the time its validity would have been. Again, it does the same.
   */
  async release(): Promise<void> {
    this.releasing ??= this.confirm(this.client.locks.release, { holdId: this.holdId });
    await this.releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** The caller as a member of a group. Leave it, also after it was lost. It is valid for as long as its lease is. */
export class Membership extends Held<JoinResponse> {
  /** Tells this member from all that have or had its name. */
  incarnation = 0n;
  private leaving: Promise<void> | undefined;

  /** @internal */
  constructor(
    client: Client,
    readonly group: string,
    readonly member: string,
    private readonly lease: Lease,
    private readonly single: boolean,
  ) {
    super(client, `member ${group}/${member}`);
  }

  override get validFor(): number {
    return this.claim.over ? 0 : this.lease.validFor;
  }

  override get error(): LostError | undefined {
    const { error } = this.lease;
    return this.claim.over || error === undefined ? this.claim.lost : new LostError(this.claim.what, error.cause);
  }

  /** @internal */
  async join(request: JoinRequest, signal: AbortSignal | undefined): Promise<this> {
    try {
      await this.follow(
        () => this.start(request),
        (event) => this.hear(event),
        signal,
      );
      return this;
    } catch (error) {
      throw this.refused(error);
    }
  }

  private start(request: JoinRequest): ClientReadableStream<JoinResponse> {
    const stream = start(this.client.groups.join, request);
    this.claim.cut = () => stream.cancel();
    this.claim.standOn(this.lease.claim, () => this.claim.lose(this.lease.why()));
    return stream;
  }

  private hear({ event }: JoinResponse): boolean {
    if (event?.$case === "joined" && this.incarnation === 0n) {
      this.incarnation = event.value.incarnation;
      return true;
    }
    if (event?.$case === "suspended" || event?.$case === "resumed") {
      this.claim.suspended = event.$case === "suspended";
    }
    return false;
  }

  /** Changes what others are told about this member. */
  async update(metadata: Labels): Promise<void> {
    const request = { group: this.group, member: this.member, metadata, leaseId: this.lease.id };
    await insist(this.client.groups.update, request);
  }

  /**
   * Leaves the group; with a lease of its own, which ends, that is confirmed. Rejects with LostError if it was lost before. Again, it
   * does the same.
   */
  async leave(): Promise<void> {
    this.leaving ??= this.leaveOnce();
    await this.leaving;
  }

  private async leaveOnce(): Promise<void> {
    const lost = this.error;
    await this.abandon();
    if (this.single) {
      await this.lease.close().catch((error: unknown) => {
        throw lost ?? error;
      });
    }
    if (lost !== undefined) {
      throw lost;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}

/** Talks to one sidecar. Close it: that gives up all that it holds and waits for. */
export class Client implements Disposable {
  /** The configuration. */
  readonly config: Config;
  /** @internal */
  readonly locks: Stub<typeof LockServiceService>;
  /** @internal */
  readonly leases: Stub<typeof LeaseServiceService>;
  /** @internal */
  readonly groups: Stub<typeof MembershipServiceService>;
  /** @internal */
  readonly holds: Keeper;
  /** @internal */
  readonly terms: Keeper;
  /** @internal */
  readonly logger: Logger | undefined;
  /** @internal What is open. */
  readonly streams = new Set<{ cancel(): void }>();
  private readonly channel: Channel;
  private readonly sequences: Stub<typeof SequenceServiceService>;
  private over = false;

  /** Throws RangeError for an address that is none. It does not wait for a connection; the first call does. */
  constructor(options: ClientOptions = {}) {
    this.logger = options.logger;
    this.holds = new Keeper((ids, patience) => this.checkHolds(ids, patience), options.logger);
    this.terms = new Keeper((ids, patience) => this.checkLeases(ids, patience), options.logger);
    this.channel = openChannel(options.address, options.credentials);
    this.locks = stubOf(this.channel, LockServiceService);
    this.leases = stubOf(this.channel, LeaseServiceService);
    this.groups = stubOf(this.channel, MembershipServiceService);
    this.sequences = stubOf(this.channel, SequenceServiceService);
    this.config = new Config(stubOf(this.channel, ConfigServiceService));
  }

  /** Gives up everything that this client holds and waits for. */
  close(): void {
    if (this.over) {
      return;
    }
    this.over = true;
    this.holds.close(); // before the sidecar learns of it
    this.terms.close();
    for (const stream of [...this.streams]) {
      stream.cancel();
    }
    this.channel.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Opens a lease. */
  async openLease(options: LeaseOptions = {}): Promise<Lease> {
    const { ttl, owner = "", metadata = {}, signal } = options;
    return new Lease(this, "lease").open({ ttl: duration(ttl), owner, metadata }, signal);
  }

  /**
   * Waits for its turn and settles when the lock is certainly the caller's for some time to come.
   *
   * Rejects with LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors, such
   * as LeaseLostError if it was granted and lost before this could settle; with the signal's reason.
   */
  async acquire(name: string, options: LockOptions = {}): Promise<Lock> {
    return new Lock(this, name, options).acquire();
  }

  /**
   * Holds the lock while body runs, releases it, and gives what body gives.
   *
   * The signal that body gets is aborted, with LostError as its reason, as soon as the lock is lost, and with SuspendedError when it has
   * been suspended for suspensionGrace; also with the reason of the caller's own signal. A body that has lost its lock rejects with
   * LostError unless it fails by itself.
   */
  async withLock<T>(
    name: string,
    options: WithLockOptions,
    body: (lock: Lock, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    const lock = await this.acquire(name, options);
    const stop = new AbortController();
    const { signal, suspensionGrace } = options;
    const abort = (): void => stop.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) {
      abort();
    }
    lock.claim.whenOver(() => stop.abort(lock.error));
    let timer: NodeJS.Timeout | undefined;
    lock.whenSuspended = (suspended) => {
      clearTimeout(timer);
      if (suspended && suspensionGrace !== undefined) {
        const error = new SuspendedError(`lock ${name} has been suspended for ${suspensionGrace} s`);
        timer = setTimeout(() => stop.abort(error), suspensionGrace * 1000);
      }
    };
    lock.whenSuspended(lock.suspended);
    try {
      return await runAndRelease(lock, () => body(lock, stop.signal));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  /**
   * Runs body whenever it holds the lock, until body settles and has not lost it, and gives what it gives. The signal that body gets is
   * aborted when the lock is lost, and body is run again after the next grant. It waits for a sidecar or an ensemble that is away.
   */
  async runWhileLeader<T>(
    name: string,
    options: WithLockOptions,
    body: (lock: Lock, signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    const pause = new Pause();
    for (;;) {
      let lead: Lock | undefined;
      try {
        return await this.withLock(name, options, (lock, signal) => {
          lead = lock;
          pause.reset();
          return body(lock, signal);
        });
      } catch (error) {
        const lost = lead?.error !== undefined && !this.over;
        const passes = isTransient(error) || (options.lease === undefined && wasLost(error));
        if (options.signal?.aborted === true || !(lost || (lead === undefined && passes))) {
          throw error;
        }
      }
      await sleep(pause.next(), options.signal);
    }
  }

  /** Shows who holds the lock and who waits for it. */
  async getLock(name: string): Promise<LockView> {
    return lockViewFrom((await insist(this.locks.get, { name })).view);
  }

  /** Shows the same as getLock, at once and whenever it has changed, also across restarts of the sidecar. The signal ends it. */
  async *watchLock(name: string, signal?: AbortSignal): AsyncGenerator<LockView, void> {
    const open = (): ReturnType<typeof this.locks.watch> => start(this.locks.watch, { name });
    for await (const message of reopened(open, signal)) {
      if (message !== undefined) {
        yield lockViewFrom(message.view);
      }
    }
  }

  /** Says who holds the lock first, undefined for nobody, at once and whenever that has changed. The signal ends it. */
  async *watchLeader(name: string, signal?: AbortSignal): AsyncGenerator<Contender | undefined, void> {
    let told = -1n;
    for await (const { holders } of this.watchLock(name, signal)) {
      const token = holders[0]?.fencingToken ?? 0n;
      if (token !== told) {
        told = token;
        yield holders[0];
      }
    }
  }

  /**
   * Asks every holder of the lock to let go, and says how many were asked. With a grace in seconds, the holds end by force when it is
   * over: for operators.
   */
  async revoke(name: string, options: { readonly reason?: string; readonly grace?: number } = {}): Promise<number> {
    const request = { name, reason: options.reason ?? "", grace: duration(options.grace) };
    return (await insist(this.locks.revoke, request)).asked;
  }

  /** Gives access to the sequence of that name, which need not exist. */
  sequence(name: string): Sequence {
    return new Sequence(this.sequences, name);
  }

  /**
   * Makes the caller a member of a group, and settles when others can see it. Rejects with MemberExistsError, WaitTimeoutError,
   * EnsembleUnreachableError.
   */
  async join(group: string, member: string, options: JoinOptions = {}): Promise<Membership> {
    const { owner = "", metadata = {}, onConflict = "reject", wait, signal } = options;
    const own = options.lease ?? (await this.openLease({ owner, ...(signal === undefined ? {} : { signal }) }));
    const membership = new Membership(this, group, member, own, options.lease === undefined);
    try {
      return await membership.join(
        { group, member, metadata, owner, leaseId: own.id, onConflict: conflicts[onConflict], waitTimeout: duration(wait) },
        signal,
      );
    } catch (error) {
      if (options.lease === undefined) {
        await own.abandon();
      }
      throw error;
    }
  }

  /**
   * Is a member of the group until the signal is aborted, and joins again when the lease was lost. A member of its name that is still
   * there from before is waited for. Rejects with LostError when somebody wants it out: it was replaced or removed; with the signal's
   * reason, when it has left.
   */
  async stayJoined(
    group: string,
    member: string,
    options: Pick<JoinOptions, "owner" | "metadata"> & {
      readonly signal: AbortSignal;
      readonly onJoined?: (m: Membership) => void;
    },
  ): Promise<never> {
    const pause = new Pause();
    const { signal, onJoined, ...rest } = options;
    for (;;) {
      try {
        const membership = await this.join(group, member, { ...rest, signal, onConflict: "wait" });
        pause.reset();
        onJoined?.(membership);
        await untilAborted(membership.ended, signal);
        await membership.leave();
      } catch (error) {
        const wanted = error instanceof LostError && !isUnwanted(error.cause) && !this.over;
        if (!signal.aborted && !wanted && !isTransient(error) && !wasLost(error)) {
          throw error;
        }
      }
      await sleep(pause.next(), signal);
    }
  }

  /** Shows who is in the group. */
  async getGroup(group: string): Promise<GroupView> {
    return groupViewFrom((await insist(this.groups.get, { group })).view, false);
  }

  /** Shows the same as getGroup, at once and whenever it has changed, also across restarts of the sidecar. The signal ends it. */
  async *watchGroup(group: string, signal?: AbortSignal): AsyncGenerator<GroupView, void> {
    const open = (): ReturnType<typeof this.groups.watch> => start(this.groups.watch, { group });
    for await (const message of reopened(open, signal)) {
      if (message !== undefined) {
        yield groupViewFrom(message.view, message.stale);
      }
    }
  }

  /** @internal Says by Release that an ended hold is counted on no more, when all have been told; the answer is known. */
  acknowledge(holdId: string): void {
    setImmediate(() => {
      if (!this.over) {
        ask(this.locks.release, { holdId }, GIVE_UP_PATIENCE).catch(() => undefined);
      }
    });
  }

  private async checkHolds(ids: string[], patience: number): Promise<Map<string, Answer>> {
    const answers = new Map<string, Answer>();
    for (let first = 0; first < ids.length; first += MOST_HOLDS) {
      for (const [id, answer] of await this.checkSome(ids.slice(first, first + MOST_HOLDS), patience)) {
        answers.set(id, answer);
      }
    }
    return answers;
  }

  /** Asks about each hold alone if one of them is unknown: the sidecar does not say which. */
  private async checkSome(ids: string[], patience: number): Promise<Map<string, Answer>> {
    try {
      const { holds } = await ask(this.locks.check, { holdIds: ids }, patience);
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
        for (const [one, answer] of await this.checkSome([id], patience)) {
          each.set(one, answer);
        }
      }
      return each;
    }
  }

  private async checkLeases(ids: string[], patience: number): Promise<Map<string, Answer>> {
    const answers = new Map<string, Answer>();
    for (const id of ids) {
      try {
        const reply = await ask(this.leases.check, { leaseId: id }, patience);
        answers.set(id, { validFor: seconds(reply.validFor) });
      } catch (error) {
        const over = error instanceof SidekeeperError && [status.ABORTED, status.NOT_FOUND].includes(error.code);
        if (!over) {
          throw error;
        }
        answers.set(id, { validFor: 0, end: error });
      }
    }
    return answers;
  }
}

function answerFrom(hold: CheckedHold): Answer {
  switch (hold.reason) {
    case "":
      return { validFor: seconds(hold.validFor) };
    case "RELEASED":
      return { validFor: 0, givenUp: true };
    default:
      return { validFor: 0, end: named(hold.reason, "the sidecar says so") };
  }
}

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

/** Runs a body and releases its lock, whatever the body does. A body that failed fails with its own error. */
async function runAndRelease<T>(lock: Lock, body: () => Promise<T> | T): Promise<T> {
  let result: T;
  try {
    result = await body();
  } catch (error) {
    await lock.release().catch(() => undefined); // it is over for the caller all the same
    throw error;
  }
  await lock.release();
  return result;
}
