/** The stream of a lease, which carries what its client starts on the lease: requests with ids, and their events and ends. */

import { type ClientDuplexStream, status } from "@grpc/grpc-js";

import type { Answer } from "./claim.js";
import { SidekeeperError, closed, fromEnded } from "./errors.js";
import type { Event, MultiplexRequest, MultiplexResponse, OpenRequest, Start } from "./gen/sidekeeper/lease/v1/lease.js";
import { type Carrier, GIVE_UP_TIMEOUT } from "./held.js";
import { listen } from "./transport.js";
import { seconds } from "./types.js";

type Response = NonNullable<MultiplexResponse["response"]>;

/** What requests of one kind or the other are told. */
type Own = NonNullable<Event["event"]>;

/** What all requests are told. */
type Suspension = Extract<Response, { $case: "suspended" | "resumed" }>;

/** The stream. Its messages are read and sent as they come: whoever is told of them must not hold it up. */
export class Multiplex implements Carrier<Response> {
  /** Why what it carries has ended, from the end of the lease's claim. */
  why: SidekeeperError = closed();
  /** Whether messages are sent and read. */
  alive = true;
  readonly requests = new Map<bigint, Pick<Request<unknown>, "hear" | "end">>();
  private last = 0n;
  private readonly checks = new Map<bigint, (answer: Answer) => void>();

  constructor(
    private readonly stream: ClientDuplexStream<MultiplexRequest, MultiplexResponse>,
    request: OpenRequest,
  ) {
    this.send({ $case: "open", value: request });
  }

  listen(heard: (response: Response | undefined) => void, ended: (error?: SidekeeperError) => void): void {
    listen<MultiplexResponse>(
      this.stream,
      ({ response }) => {
        heard(response);
        this.pass(response);
      },
      (error) => {
        this.alive = false;
        ended(error);
        this.end();
      },
    );
  }

  cancel(): void {
    this.alive = false;
    this.stream.cancel();
  }

  /** Starts a request. What `select` makes of its events is heard. */
  start<Event>(request: Start["request"], select: (event: Own) => Event | undefined): Carrier<Event | Suspension> {
    const requestId = ++this.last;
    const started = new Request(this, requestId, select);
    this.requests.set(requestId, started);
    this.send({ $case: "start", value: { requestId, request } });
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

  /** Sends a message if it can be sent, and waits for nobody. */
  send(request: NonNullable<MultiplexRequest["request"]>): void {
    if (this.alive) {
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
        this.requests.get(response.value.requestId)?.end(fromEnded(response.value));
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
  private outcome: { readonly error: SidekeeperError | undefined } | undefined;
  private settle: () => void = () => undefined;
  private readonly over = new Promise<void>((resolve) => {
    this.settle = resolve;
  });

  constructor(
    private readonly carrier: Multiplex,
    private readonly requestId: bigint,
    private readonly select: (event: Own) => Event | undefined,
  ) {}

  listen(heard: (event: Event | Suspension | undefined) => void, ended: (error?: SidekeeperError) => void): void {
    this.heard = heard;
    this.ended = ended;
    if (this.outcome !== undefined) {
      ended(this.outcome.error);
    }
  }

  hear(event: Own | Suspension): void {
    if (this.outcome === undefined) {
      this.heard(event.$case === "suspended" || event.$case === "resumed" ? event : this.select(event));
    }
  }

  end(error: SidekeeperError | undefined): void {
    if (this.outcome === undefined) {
      this.outcome = { error };
      this.carrier.requests.delete(this.requestId);
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

  giveUp(): Promise<void> | undefined {
    if (!this.carrier.alive) {
      return undefined;
    }
    this.stop();
    return within(GIVE_UP_TIMEOUT, this.result());
  }

  private stop(): void {
    this.carrier.send({ $case: "stop", value: { requestId: this.requestId } });
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
