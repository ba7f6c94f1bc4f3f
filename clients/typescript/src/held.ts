/**
 * What a caller holds by a stream, whatever it is: the stream is opened, something is granted on it, its validity is checked, it is
 * suspended and resumed, and it ends with a reason, which is acknowledged. No recipe is named here: each is a thin type on top.
 */

import { AsyncResource } from "node:async_hooks";

import { type ClientReadableStream, status } from "@grpc/grpc-js";

import { type Ask, Checker, Claim, SHORTEST_PAUSE } from "./claim.js";
import { sleep, unlessAborted } from "./clock.js";
import { LostError, SidekeeperError, named } from "./errors.js";
import { ABSENCE_TIMEOUT, ANSWER_TIME, Backoff, listen, mayHeal } from "./transport.js";
import type { Logger } from "./types.js";

/** Seconds that a call which gives something up may take. */
export const GIVE_UP_TIMEOUT = 5;
const GIVE_UP_ATTEMPTS = 3;

/** All held streams of one client. */
export class Streams {
  closed = false;
  readonly open = new Set<{ cancel(): void }>();
  private readonly checkers: Checker[] = [];

  constructor(readonly logger?: Logger) {}

  checker(ask: Ask): Checker {
    const checker = new Checker(ask, this.logger);
    this.checkers.push(checker);
    return checker;
  }

  /** Sends an acknowledgment once, when all listeners have run, unless the client is closed. The answer only repeats how it ended. */
  acknowledge(giveUp: () => Promise<unknown>): void {
    setImmediate(() => {
      if (!this.closed) {
        giveUp().catch(() => undefined);
      }
    });
  }

  close(): void {
    this.closed = true;
    for (const checker of this.checkers) {
      checker.close(); // before the sidecar learns of it
    }
    for (const stream of [...this.open]) {
      stream.cancel();
    }
  }

  /** Settles as a call does that may take long. The signal, and the end of the client, cancel it. */
  async during<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: Error) => void) => { cancel(): void },
  ): Promise<T> {
    signal?.throwIfAborted();
    let call: { cancel(): void } | undefined;
    const settled = new Promise<T>((resolve, reject) => {
      call = begin(resolve, reject);
      this.open.add(call);
    });
    return unlessAborted(settled, signal).finally(() => {
      if (call !== undefined) {
        this.open.delete(call);
        call.cancel();
      }
    });
  }

  /** Calls a callback, if there is one. What it throws is logged: it must not end what it listens to. */
  notify<News>(what: string, callback: ((news: News) => void) | undefined, news: News): void {
    try {
      callback?.(news);
    } catch (error) {
      this.logger?.error(`a callback of ${what} failed`, error);
    }
  }
}

/** One attempt to get something. */
export interface Attempt {
  /** What it may wait for a grant, in seconds; undefined for without a limit. */
  wait: number | undefined;
  /** Whether the sidecar has said anything. */
  heard: boolean;
}

/** What those may say who wait for something. */
export interface Waiting {
  readonly wait?: number;
  readonly lease?: { readonly valid: boolean; readonly signal: AbortSignal; awaitValidity(signal?: AbortSignal): Promise<void> };
  readonly signal?: AbortSignal;
}

/**
 * Makes attempts while the sidecar or the ensemble is away: for as long as the caller waits; if that has no limit, until nothing has been
 * heard for ABSENCE_TIMEOUT. What depends on a lease is tried no longer than that lives. What an attempt was granted has ended before the
 * next one.
 */
export async function throughAbsence<T>(
  streams: Streams,
  { wait, lease, signal }: Waiting,
  attempt: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const now = (): number => performance.now() / 1000;
  let until = wait === undefined ? undefined : now() + wait;
  let left = wait;
  const backoff = new Backoff();
  for (;;) {
    const one: Attempt = { wait: left, heard: false };
    let pause: number;
    try {
      if (lease?.valid === false) {
        await lease.awaitValidity(signal);
      }
      return await attempt(one);
    } catch (error) {
      if (!mayHeal(error, one.heard) || lease?.signal.aborted === true || streams.closed) {
        throw error;
      }
      if (one.heard) {
        backoff.reset();
      }
      if (until === undefined || (wait === undefined && one.heard)) {
        until = now() + ABSENCE_TIMEOUT;
      }
      pause = backoff.next();
      if (now() + pause >= until) {
        throw error;
      }
    }
    await sleep(pause, signal);
    left = wait === undefined ? undefined : Math.max(until - now(), 0.001); // 0 would be an attempt that does not wait
  }
}

/** One event of a stream, as the generated code has it. */
export interface Tagged {
  readonly $case: string;
}

/** The event whose name is in the first type; its value comes with it. */
type Named<Event extends Tagged, Case extends string> = Extract<Event, { readonly $case: Case }>;

/** What carries one held thing: its events, in order, and its end. */
export interface Carrier<Event> {
  listen(heard: (event: Event | undefined) => void, ended: (error?: SidekeeperError) => void): void;
  cancel(): void;
  /** Has the sidecar give it up, or acknowledges its end; undefined if only a call of its own can do that. */
  giveUp?(): Promise<void> | undefined;
}

/** The stream of a call that carries one thing. */
export function single<Event extends { readonly $case: string }>(
  stream: ClientReadableStream<{ event?: Event | undefined }>,
): Carrier<Event> {
  return {
    listen: (heard, ended) => listen(stream, ({ event }) => event?.$case !== "keepalive" && heard(event), ended),
    cancel: () => stream.cancel(),
  };
}

/** What one recipe is made of. */
export interface Kind<Request, Event extends Tagged, Granted extends string> {
  readonly streams: Streams;
  readonly open: (request: Request) => Carrier<Event>;
  /** The event of the stream that grants it. */
  readonly granted: Granted;
  /** Has the sidecar end what the key names, where the carrier does not. */
  readonly giveUp?: (key: string) => Promise<unknown>;
  /** Without one, the validity is that of the lease. */
  readonly checker?: Checker | undefined;
  /** Whether the sidecar may keep the place after a loss until it is given up. */
  readonly acknowledged?: boolean;
}

/** Something held by a stream. A recipe derives from it and says in `grant` what the granting event carries. */
export abstract class HeldStream<Request, Event extends Tagged, Granted extends string> implements AsyncDisposable {
  /** @internal */
  readonly claim: Claim;
  /** @internal Is called when a suspension begins or ends. */
  onSuspension: (suspended: boolean) => void = () => undefined;
  private readonly controller = new AbortController();
  /** @internal */
  protected carrier: Carrier<Event> | undefined;
  private heldAs = "";
  private givingUp: Promise<void> | undefined;
  private settle: () => void = () => undefined;
  private readonly read = new Promise<void>((resolve) => {
    this.settle = resolve;
  });

  /** @internal */
  constructor(
    protected readonly kind: Kind<Request, Event, Granted>,
    what: string,
    private readonly dependsOn?: { readonly claim: Claim },
  ) {
    this.claim = new Claim(what, kind.checker === undefined ? dependsOn?.claim : undefined, kind.streams.logger);
    this.claim.onEnd(() => this.controller.abort(this.claim.lost ?? new Error(`${what} was given up`)));
    this.claim.onEnd(() => this.acknowledge());
  }

  /** Takes in the event that grants it, and returns the key by which later calls name it. */
  protected abstract grant(granted: Named<Event, Granted>): string;

  /** Is called with every event, after the core has handled it. */
  protected notice?(event: Event | undefined): void;

  /** @internal Is called when nothing more is read, with the reason if there is one. */
  protected streamEnded?(error: SidekeeperError | undefined): void;

  /** Whether it is proven to be the caller's at this moment. */
  get valid(): boolean {
    return this.validFor > 0;
  }

  /** For how many seconds it is proven to remain the caller's, even if the sidecar is not heard from again; 0 if it is not. */
  get validFor(): number {
    return this.claim.validFor();
  }

  /** Whether the sidecar has lost contact with the ensemble and not regained it yet. */
  get suspended(): boolean {
    return this.claim.suspended;
  }

  /** Why it was lost, from the moment it is no longer valid; undefined before that, and if it was given up. */
  get error(): LostError | undefined {
    return this.claim.lost;
  }

  /** Aborted when it is no longer the caller's: with LostError as its reason if it was lost. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Settled when it is no longer the caller's: lost, or given up. */
  get ended(): Promise<void> {
    return this.claim.ended;
  }

  /** @internal Settles when it is valid or has ended. A lease on which nothing stands may be neither: then its checker goes on asking. */
  async awaitValidity(signal?: AbortSignal): Promise<void> {
    const until = performance.now() + ANSWER_TIME * 1000;
    while (!this.valid && this.error === undefined && !this.claim.over) {
      if (performance.now() > until) {
        throw new SidekeeperError(status.UNAVAILABLE, { message: "the sidecar does not answer" });
      }
      await sleep(SHORTEST_PAUSE, signal);
    }
  }

  /** @internal Opens the stream, and settles when it is granted and valid. */
  async open(request: Request, signal: AbortSignal | undefined, attempt: Attempt): Promise<this> {
    try {
      signal?.throwIfAborted();
      await unlessAborted(this.begin(request, attempt), signal);
      if (this.claim.lost !== undefined) {
        throw this.claim.lost.cause;
      }
      signal?.throwIfAborted();
      return this;
    } catch (error) {
      const { lost } = this.claim;
      this.claim.abandon();
      // It never was the caller's, so that nothing was lost.
      throw error instanceof SidekeeperError ? (lost?.cause ?? error) : error;
    }
  }

  /**
   * Settles when it is granted and valid. The stream is read until its end, which is the end of the claim. What is heard is handled in the
   * async context of this call, and not in that of whichever call has made the connection.
   */
  private async begin(request: Request, attempt: Attempt): Promise<void> {
    const { streams } = this.kind;
    const carrier = this.kind.open(request);
    this.carrier = carrier;
    this.claim.cancel = () => carrier.cancel();
    if (this.dependsOn !== undefined) {
      this.claim.dependsOn(this.dependsOn.claim);
    }
    streams.open.add(carrier);
    await new Promise<void>((resolve, reject) => {
      const heard = (event: Event | undefined): void => {
        attempt.heard = true;
        this.hear(event);
        if (this.heldAs !== "") {
          resolve();
        }
      };
      const ended = (error?: SidekeeperError): void => {
        streams.open.delete(carrier);
        reject(error ?? new SidekeeperError(status.UNAVAILABLE, { message: "the sidecar ended the stream without a reason" }));
        if (error === undefined) {
          this.claim.end();
        } else {
          this.claim.lose(error);
        }
        this.streamEnded?.(error);
        this.settle();
      };
      carrier.listen(AsyncResource.bind(heard), AsyncResource.bind(ended));
    });
    await this.kind.checker?.begin(this.heldAs, this.claim);
  }

  private hear(event: Event | undefined): void {
    if (event?.$case === this.kind.granted && this.heldAs === "") {
      this.heldAs = this.grant(event as Named<Event, Granted>);
    }
    const suspended = event?.$case === "suspended";
    if (suspended || event?.$case === "resumed") {
      if (this.heldAs === "") {
        return; // it is the lease's, and nothing is held yet
      }
      if (this.claim.suspended !== suspended) {
        this.claim.suspended = suspended;
        this.onSuspension(suspended);
      }
    }
    this.notice?.(event);
  }

  /**
   * Acknowledges a loss: until then the sidecar may keep its place for the caller. What was lost because the caller closed its lease
   * needs no acknowledgment.
   */
  private acknowledge(): void {
    const { acknowledged, streams } = this.kind;
    const closed = this.dependsOn?.claim.wasGivenUp === true;
    if (acknowledged === true && this.heldAs !== "" && this.error !== undefined && !closed) {
      streams.acknowledge(async () => this.ask());
    }
  }

  /** Has the sidecar end it. */
  private async ask(): Promise<void> {
    await (this.carrier?.giveUp?.() ?? this.kind.giveUp?.(this.heldAs));
  }

  /** Gives it up and has the sidecar confirm that, once, as `ask` does. Rejects with LostError if it was lost before. */
  protected async giveUp(ask?: () => Promise<void>): Promise<void> {
    this.givingUp ??= this.giveUpOnce(ask);
    await this.givingUp;
  }

  /** Gives it up in another way, which is its outcome from then on. */
  protected async giveUpBy(giveUp: () => Promise<void>): Promise<void> {
    this.givingUp = giveUp();
    await this.givingUp;
  }

  /** Whether the caller has begun to give it up. */
  protected get isGivenUp(): boolean {
    return this.givingUp !== undefined;
  }

  protected async giveUpOnce(ask = async (): Promise<void> => this.ask()): Promise<void> {
    this.claim.end();
    try {
      if (this.claim.lost !== undefined) {
        throw this.claim.lost;
      }
      await this.confirm(ask);
    } finally {
      await this.abandon();
    }
  }

  private async confirm(ask: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await ask();
        return;
      } catch (error) {
        if (!(error instanceof SidekeeperError)) {
          throw error;
        }
        const unanswered = error.code === status.UNAVAILABLE || error.code === status.DEADLINE_EXCEEDED;
        if (error.reason !== "" || !unanswered || attempt === GIVE_UP_ATTEMPTS) {
          throw notConfirmed(this.claim.what, error);
        }
        await sleep(0.05 + Math.random() / 20);
      }
    }
  }

  /** @internal Ends it and its stream without asking for a confirmation. */
  async abandon(): Promise<void> {
    this.claim.abandon();
    await this.read;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.giveUp();
  }
}

/**
 * What the caller is told when the sidecar was asked to end what it held, and has not confirmed that. It is never the error itself: a caller that
 * retries a call must not repeat the work.
 */
function notConfirmed(what: string, error: SidekeeperError): Error {
  if (error.code === status.ABORTED) {
    return new LostError(what, error);
  }
  const why = `${error.reason || status[error.code]}: ${error.message}`;
  return named("RELEASE_UNCONFIRMED", `${what}: the work has ended, but its release is not confirmed: ${why}`);
}
