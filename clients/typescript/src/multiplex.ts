/** The stream of a lease, which carries what its client starts on the lease: requests with ids, and their events and ends. */

import { type ClientDuplexStream, status } from "@grpc/grpc-js";

import type { Answer } from "./claim.js";
import { SidekeeperError, closed, fromEnded } from "./errors.js";
import type { Claim, Event, MultiplexRequest, MultiplexResponse, OpenRequest, Start } from "./gen/sidekeeper/lease/v1/lease.js";
import { type Carrier, GIVE_UP_TIMEOUT } from "./held.js";
import { listen, mayHeal } from "./transport.js";
import { duration, seconds } from "./types.js";

/** Milliseconds between two attempts to come back to a lease: the sidecar is on this machine, and may be there at any moment. */
const RESUME_PAUSE = 50;
/** After how many attempts those who hold something are told again how long it is still valid: about once a second. */
const ATTEMPTS_TOLD = 20;

type Response = NonNullable<MultiplexResponse["response"]>;

/** What requests of one kind or the other are told. */
type Own = NonNullable<Event["event"]>;

/** What all requests are told. */
type Suspension = Extract<Response, { $case: "suspended" | "resumed" }>;

/** The stream. It reads and sends its messages as they come: a listener that is told of them must not hold it up. */
export class Multiplex implements Carrier<Response> {
  /** Why what it carries has ended, from the end of the lease's claim. */
  why: SidekeeperError = closed();
  /** Whether messages are sent and read. */
  alive = true;
  readonly requests = new Map<bigint, Pick<Request<unknown>, "hear" | "hearEnd" | "end" | "claim" | "stopped" | "mayBeGone">>();
  /** Of a lease that outlives the sidecar's process, its id, and for how many seconds it is valid. */
  outlives: { readonly leaseId: string; readonly validFor: () => number } | undefined;
  private last = 0n;
  private readonly checks = new Map<bigint, (answer: Answer) => void>();
  private stream: ClientDuplexStream<MultiplexRequest, MultiplexResponse>;
  private connected = true;
  /** Whether the stream is broken, until another one has resumed the lease. */
  private broken = false;
  private heard: (response: Response | undefined) => void = () => undefined;
  private ended: (error?: SidekeeperError) => void = () => undefined;

  constructor(
    private readonly open: () => ClientDuplexStream<MultiplexRequest, MultiplexResponse>,
    request: OpenRequest,
  ) {
    this.stream = open();
    this.send({ $case: "open", value: request });
  }

  listen(heard: (response: Response | undefined) => void, ended: (error?: SidekeeperError) => void): void {
    this.heard = heard;
    this.ended = ended;
    this.follow(
      (response) => this.take(response),
      (error) => this.streamEnded(error),
    );
  }

  /** Listens to the present stream. One that has failed says afterwards that it has ended, too. */
  private follow(take: (response: Response | undefined) => void, ended: (error?: SidekeeperError) => void): void {
    let over = false;
    listen<MultiplexResponse>(
      this.stream,
      ({ response }) => take(response),
      (error) => {
        if (!over) {
          over = true;
          this.connected = false;
          this.requests.forEach((request) => (request.mayBeGone = request.stopped));
          ended(error);
        }
      },
    );
  }

  private take(response: Response | undefined): void {
    this.heard(response);
    this.pass(response);
  }

  private streamEnded(error: SidekeeperError | undefined): void {
    const broken = error?.code === status.UNAVAILABLE && error.reason === "";
    if (broken && this.isWanted()) {
      this.broken = true;
      this.comeBack(error, 0);
      return;
    }
    this.alive = false;
    this.ended(error);
    this.end();
  }

  /** Whether the lease outlives its stream and counts still. */
  private isWanted(): boolean {
    return this.alive && this.outlives !== undefined && this.outlives.validFor() > 0;
  }

  /**
   * Comes back to the lease over a new stream, after so many attempts. Until then the caller's claims count on what they were told, and no
   * longer than that: if it runs out, the claim ends, and with it the attempts.
   */
  private comeBack(broken: SidekeeperError, attempts: number): void {
    const { outlives } = this;
    if (!this.isWanted() || outlives === undefined) {
      this.alive = false;
      this.streamEnded(broken);
      return;
    }
    if (attempts % ATTEMPTS_TOLD === 0) {
      this.take({ $case: "suspended", value: { remaining: duration(outlives.validFor()) } });
    }
    try {
      this.stream = this.open();
    } catch {
      this.alive = false;
      this.streamEnded(closed());
      return;
    }
    this.connected = true;
    let resumed = false;
    this.follow(
      (response) => {
        if (resumed) {
          this.take(response);
        } else if (response?.$case === "opened") {
          resumed = true;
          this.broken = false;
          this.take({ $case: "resumed", value: {} });
        }
      },
      (error) => {
        if (resumed) {
          this.streamEnded(error);
        } else if (error === undefined || mayHeal(error, true)) {
          setTimeout(() => this.comeBack(broken, attempts + 1), RESUME_PAUSE);
        } else {
          this.alive = false;
          this.streamEnded(error.reason === "LEASE_NOT_FOUND" ? broken : error);
        }
      },
    );
    const requests = [...this.requests.entries()];
    const claims = requests.map(([, request]) => request.claim());
    this.send({ $case: "resume", value: { leaseId: outlives.leaseId, claims, keepalive: undefined } });
    requests.filter(([, { stopped }]) => stopped).forEach(([requestId]) => this.send({ $case: "stop", value: { requestId } }));
    [...this.checks.keys()].forEach((checkId) => this.send({ $case: "check", value: { checkId } }));
  }

  /** Has the sidecar close the lease when it has taken what was sent before. Nothing is sent after that. */
  close(): void {
    if (this.alive && this.connected) {
      this.connected = false;
      this.stream.end();
    }
  }

  cancel(): void {
    this.alive = false;
    this.stream.cancel();
  }

  /** Whether the lease's clock counts: a request has not ended, or the stream is broken. */
  get carriesAnything(): boolean {
    return this.broken || this.requests.size > 0;
  }

  /** Starts a request. What `select` makes of its events is heard. */
  start<Event>(request: Start["request"], select: (event: Own) => Event | undefined): Carrier<Event | Suspension> {
    const requestId = ++this.last;
    const started = new Request(this, { requestId, request }, select);
    this.requests.set(requestId, started);
    this.send({ $case: "start", value: started.start });
    return started;
  }

  /** Asks how long the lease is valid, within a timeout in seconds. The ends that are told before the answer have been heard by then. */
  async check(timeout: number): Promise<Answer> {
    if (!this.alive) {
      return { validFor: 0, end: this.why };
    }
    const checkId = ++this.last;
    const answer = new Promise<Answer>((resolve) => this.checks.set(checkId, resolve));
    this.send({ $case: "check", value: { checkId } });
    return within(timeout, answer).finally(() => this.checks.delete(checkId));
  }

  /** Sends a message if it can be sent, and does not wait. What cannot be sent is among the claims of the next stream. */
  send(request: NonNullable<MultiplexRequest["request"]>): void {
    if (this.alive && this.connected) {
      this.stream.write({ request });
    }
  }

  private pass(response: Response | undefined): void {
    switch (response?.$case) {
      case "suspended":
      case "resumed":
        [...this.requests.values()].forEach((request) => request.hear(response));
        break;
      case "event":
        if (response.value.event !== undefined) {
          this.requests.get(response.value.requestId)?.hear(response.value.event);
        }
        break;
      case "ended":
        this.requests.get(response.value.requestId)?.hearEnd(fromEnded(response.value));
        break;
      case "checked":
        this.checks.get(response.value.checkId)?.({ validFor: seconds(response.value.validFor) });
    }
  }

  private end(): void {
    [...this.requests.values()].forEach((request) => request.end(this.why));
    [...this.checks.values()].forEach((answer) => answer({ validFor: 0, end: this.why }));
  }
}

/** A request on the stream of its lease. */
class Request<Event> implements Carrier<Event | Suspension> {
  private heard: (event: Event | Suspension | undefined) => void = () => undefined;
  private ended: (error?: SidekeeperError) => void = () => undefined;
  private holdId = "";
  private token = 0n;
  /** Whether the sidecar was asked to give it up. */
  stopped = false;
  /** Whether it was asked over a stream that has broken since. */
  mayBeGone = false;
  private outcome: { readonly error: SidekeeperError | undefined } | undefined;
  private settle: () => void = () => undefined;
  private readonly over = new Promise<void>((resolve) => {
    this.settle = resolve;
  });

  constructor(
    private readonly carrier: Multiplex,
    readonly start: Start,
    private readonly select: (event: Own) => Event | undefined,
  ) {}

  listen(heard: (event: Event | Suspension | undefined) => void, ended: (error?: SidekeeperError) => void): void {
    this.heard = heard;
    this.ended = ended;
    if (this.outcome !== undefined) {
      ended(this.outcome.error);
    }
  }

  /** What it is for the sidecar that comes back to the lease. */
  claim(): Claim {
    return { start: this.start, holdId: this.holdId, token: this.token };
  }

  hear(event: Own | Suspension): void {
    this.note(event);
    if (this.outcome === undefined) {
      this.heard(event.$case === "suspended" || event.$case === "resumed" ? event : this.select(event));
    }
  }

  /** Notes what was granted. */
  private note(event: Own | Suspension): void {
    if (event.$case === "acquire" && event.value.event?.$case === "granted") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.fencingToken;
    } else if (event.$case === "acquireAll" && event.value.event?.$case === "granted") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.locks[0]?.fencingToken ?? 0n; // of all: their places were made at once
    } else if (event.$case === "acquirePermits" && event.value.event?.$case === "granted") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.token;
    } else if (event.$case === "enter" && event.value.event?.$case === "entered") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.token;
    } else if (event.$case === "campaign" && event.value.event?.$case === "elected") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.ticket?.fencingToken ?? 0n;
    } else if (event.$case === "begin" && event.value.event?.$case === "begun") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.fencingToken;
    } else if (event.$case === "work" && event.value.event?.$case === "fire") {
      this.holdId = event.value.event.value.holdId;
      this.token = event.value.event.value.fencingToken;
    } else if (event.$case === "join" && event.value.event?.$case === "joined") {
      this.token = event.value.event.value.incarnation;
    } else if (event.$case === "share" && event.value.event?.$case === "joined") {
      this.token = event.value.event.value.incarnation;
    }
  }

  /** Hears how it has ended. Whose place is gone because the caller gave it up has lost nothing. */
  hearEnd(error: SidekeeperError | undefined): void {
    this.end(this.mayBeGone && error?.code === status.ABORTED ? undefined : error);
  }

  end(error: SidekeeperError | undefined): void {
    if (this.outcome === undefined) {
      this.outcome = { error };
      this.carrier.requests.delete(this.start.requestId);
      this.ended(error);
      this.settle();
    }
  }

  cancel(): void {
    if (this.outcome === undefined) {
      this.stop();
      this.end(new SidekeeperError(status.CANCELLED, { message: "cancelled" }));
    }
  }

  /** What has ended is acknowledged by a call: a message on this stream is lost where the stream ends just then. */
  giveUp(): Promise<void> | undefined {
    if (!this.carrier.alive || this.outcome !== undefined) {
      return undefined;
    }
    this.stop();
    return within(GIVE_UP_TIMEOUT, this.result());
  }

  private stop(): void {
    this.stopped = true;
    this.carrier.send({ $case: "stop", value: { requestId: this.start.requestId } });
  }

  private async result(): Promise<void> {
    await this.over;
    if (this.outcome?.error !== undefined) {
      throw this.outcome.error;
    }
  }
}

/** Settles as a promise does, unless the sidecar takes longer than a timeout in seconds. */
async function within<T>(timeout: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new SidekeeperError(status.DEADLINE_EXCEEDED, { message: "the sidecar does not answer" });
    timer = setTimeout(() => reject(error), timeout * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
