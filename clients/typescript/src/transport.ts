/** The way to the sidecar: its address, the channel, and calls whose errors are this package's. */

import {
  type CallOptions,
  type ChannelCredentials,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  Client as Channel,
  Metadata,
  type ServiceError,
  credentials,
  status,
} from "@grpc/grpc-js";

import { before, now, sleep } from "./clock.js";
import {
  EnsembleUnreachableError,
  LeaseClosedError,
  LeaseLostError,
  LockBrokenError,
  LockRevokedError,
  SidecarStoppingError,
  SidekeeperError,
  closed,
  fromStatus,
} from "./errors.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import { duration } from "./types.js";

/** The default address of a sidecar. */
export const DEFAULT_ADDRESS = "unix:///run/sidekeeper/sidekeeper.sock";

/** The environment variable with the sidecar's address, for clients that are given none. */
export const ADDRESS_VARIABLE = "SIDEKEEPER_ADDRESS";

/** Seconds that a call with one answer may take, retries included. */
export const CALL_TIMEOUT = 10;

/**
 * Seconds for which a sidecar or an ensemble that is away is waited for, unless the caller says how long to wait.
 */
export const ABSENCE_TIMEOUT = 10;

/** Seconds that a sidecar may take to answer above those that it was told to wait. One that is frozen answers never. */
export const ANSWER_TIME = 2;

/**
 * Seconds without a message after which a watch takes the sidecar for away. It asks the sidecar for five messages in this time. A sidecar
 * that sends no keepalives, as an older one, is never taken for silent.
 */
export const SILENCE_TIMEOUT = 15;

/** Milliseconds beyond which a timer fires at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

// gRPC's own defaults would repeat calls that must not be repeated, notice a dropped network after hours, and wait two minutes for a
// sidecar that was restarted. Each client has a connection of its own.
const OPTIONS = {
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.use_local_subchannel_pool": 1,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 3_000,
};

// A Unix socket drops nothing: it breaks with the sidecar's process, and only then may a lease be resumed, so that it must not be given
// up here.
const KEEPALIVE = {
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.keepalive_permit_without_calls": 1,
};

/** The target as gRPC understands it, and whether it stays on this machine. Throws for what is no address. */
export function resolve(target?: string): { address: string; local: boolean } {
  let address = target ?? process.env[ADDRESS_VARIABLE] ?? "";
  if (address === "") {
    address = DEFAULT_ADDRESS;
  }
  if (address.startsWith("/")) {
    address = `unix://${address}`;
  }
  if (isSocket(address)) {
    return { address, local: true };
  }
  const parts = /^([^/]+):(\d+)$/.exec(address);
  if (parts?.[1] === undefined) {
    throw new RangeError(`sidecar address "${address}" is neither unix:///path, a path nor host:port`);
  }
  const host = parts[1].replace(/^\[|\]$/g, "");
  return { address, local: host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host) };
}

/** Whether an address that gRPC understands is that of a Unix socket, where what stands on a lease may outlive the sidecar's process. */
export function isSocket(address: string): boolean {
  return address.startsWith("unix:");
}

export function openChannel(target?: string, secure?: ChannelCredentials): Channel {
  const { address, local } = resolve(target);
  if (secure === undefined && !local) {
    throw new RangeError(`sidecar "${address}": an address that is neither a Unix socket nor loopback needs credentials`);
  }
  return new Channel(address, secure ?? credentials.createInsecure(), isSocket(address) ? OPTIONS : { ...OPTIONS, ...KEEPALIVE });
}

/** A call with one answer. */
export type Unary<Request, Reply> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  callback: (error: ServiceError | null, reply: Reply) => void,
) => ClientUnaryCall;

interface Method<Request, Reply> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (value: Buffer) => Reply;
}

type UnaryMethod<Request, Reply> = Method<Request, Reply> & { readonly responseStream: false };
type StreamMethod<Request, Reply> = Method<Request, Reply> & { readonly responseStream: true };
type DuplexMethod<Request, Reply> = StreamMethod<Request, Reply> & { readonly requestStream: true };

/** The methods of a service, as functions. */
export type Stub<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends DuplexMethod<infer Request, infer Reply>
    ? () => ClientDuplexStream<Request, Reply>
    : Service[Name] extends StreamMethod<infer Request, infer Reply>
      ? (request: Request) => ClientReadableStream<Reply>
      : Service[Name] extends UnaryMethod<infer Request, infer Reply>
        ? Unary<Request, Reply>
        : never;
};

/** Makes the functions of a service over a channel. */
export function stubOf<Service extends object>(channel: Channel, service: Service): Stub<Service> {
  const methods = Object.entries(service) as [
    string,
    Method<unknown, unknown> & { requestStream: boolean; responseStream: boolean },
  ][];
  const functions = methods.map(([name, { path, requestSerialize, responseDeserialize, requestStream, responseStream }]) => {
    const unary: Unary<unknown, unknown> = (request, metadata, options, callback) =>
      channel.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, (error, reply) =>
        callback(error, reply),
      );
    const stream = (request: unknown): ClientReadableStream<unknown> =>
      channel.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
    const duplex = (): ClientDuplexStream<unknown, unknown> =>
      channel.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    return [name, requestStream ? duplex : responseStream ? stream : unary];
  });
  return Object.fromEntries(functions) as Stub<Service>;
}

/** Makes a call with one answer, once. Rejects with SidekeeperError. */
export async function call<Request, Reply>(
  method: Unary<Request, Reply>,
  request: Request,
  timeout: number = CALL_TIMEOUT,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    begin(method, request, timeout, resolve, reject);
  });
}

/** Begins a call with one answer, which it may take so many seconds to get. Throws SidekeeperError if the client is closed. */
export function begin<Request, Reply>(
  method: Unary<Request, Reply>,
  request: Request,
  timeout: number,
  resolve: (reply: Reply) => void,
  reject: (error: SidekeeperError) => void,
): ClientUnaryCall {
  const options = { deadline: Date.now() + timeout * 1000 };
  const answer = (error: ServiceError | null, reply: Reply): void => (error ? reject(fromStatus(error)) : resolve(reply));
  return start((value) => method(value, new Metadata(), options, answer), request);
}

/** Makes an idempotent call, and repeats it while the sidecar or the ensemble is unreachable and the timeout has not passed. */
export async function callIdempotent<Request, Reply>(
  method: Unary<Request, Reply>,
  request: Request,
  isRepeatable: (error: unknown) => boolean = isTransient,
): Promise<Reply> {
  const until = performance.now() / 1000 + CALL_TIMEOUT;
  const attempt = async (): Promise<Reply> => call(method, request, Math.max(until - performance.now() / 1000, 0.001));
  return repeated(attempt, isRepeatable, until);
}

/** Makes attempts, with pauses that grow, while they fail with what may heal: until a time, and until the signal is aborted. */
export async function repeated<T>(
  attempt: () => Promise<T>,
  mayHeal: (error: unknown) => boolean,
  until: number,
  signal?: AbortSignal,
): Promise<T> {
  const backoff = new Backoff();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const pause = backoff.next();
      if (!mayHeal(error) || performance.now() / 1000 + pause >= until) {
        throw error;
      }
      await sleep(pause, signal);
    }
  }
}

/**
 * Makes a call that must not be executed twice. It is repeated only if the sidecar reports that nothing was done: the ensemble is out of
 * reach.
 */
export async function callNonIdempotent<Request, Reply>(method: Unary<Request, Reply>, request: Request): Promise<Reply> {
  return callIdempotent(method, request, (error) => error instanceof EnsembleUnreachableError);
}

/** What to let pass before something is tried again, in seconds: at random, and twice as long each time. */
export class Backoff {
  private longest = 0.05;

  next(): number {
    this.longest = Math.min(2 * this.longest, 2);
    return this.longest * (0.5 + Math.random() / 2);
  }

  /** For what has succeeded. */
  reset(): void {
    this.longest = 0.05;
  }
}

/** Whether nothing was done and the same call may succeed soon. */
export function isTransient(error: unknown): boolean {
  return error instanceof EnsembleUnreachableError || (error instanceof SidekeeperError && error.code === status.UNAVAILABLE);
}

const CUT = [status.INTERNAL, status.UNKNOWN];

/**
 * isTransient for a stream. Something between the two may have cut a stream over which the sidecar was heard, such as a proxy. gRPC makes a
 * status of that which has no reason.
 */
export function mayHeal(error: unknown, heard: boolean): boolean {
  const cut = error instanceof SidekeeperError && error.reason === "" && CUT.includes(error.code);
  return isTransient(error) || (heard && cut);
}

const LOSSES = [LeaseLostError, LeaseClosedError, LockBrokenError, LockRevokedError, SidecarStoppingError];

/** What those may say who wait for something. */
interface Waiting {
  readonly wait?: number;
  readonly signal?: AbortSignal;
}

/**
 * Gives what waits a signal that is also aborted if the sidecar does not answer soon after the time to wait; 0 and undefined say nothing of
 * how long that takes.
 */
export async function answered<O extends Waiting, T>(options: O, waiting: (options: O) => Promise<T>): Promise<T> {
  const { wait = 0, signal } = options;
  const limit = (wait + ANSWER_TIME) * 1000;
  if (wait === 0 || limit > LONGEST_TIMER) {
    return waiting(options);
  }
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), limit);
  try {
    return await waiting({
      ...options,
      signal: AbortSignal.any(signal === undefined ? [silent.signal] : [signal, silent.signal]),
    });
  } catch (error) {
    throw silent.signal.aborted ? new SidekeeperError(status.UNAVAILABLE, { message: "the sidecar does not answer" }) : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Whether something was lost while it was waited for, or between its grant and the return to the caller. */
export function wasLost(error: unknown): boolean {
  return error instanceof SidekeeperError && error.code === status.ABORTED && LOSSES.some((kind) => error instanceof kind);
}

/** Listens to a stream until it ends, with an error or with OK. What is heard after cancel is of no interest. */
export function listen<Message>(
  stream: ClientReadableStream<Message>,
  heard: (message: Message) => void,
  ended: (error?: SidekeeperError) => void,
): void {
  stream.on("data", heard);
  stream.on("error", (error: ServiceError) => ended(fromStatus(error)));
  stream.on("end", () => ended());
}

/** Starts a call. Throws SidekeeperError if the client is closed. */
export function start<Request, Stream>(method: (request: Request) => Stream, request: Request): Stream {
  try {
    return method(request);
  } catch {
    throw closed();
  }
}

/** The end of a watch that is opened again, and for how many seconds the sidecar had not been heard; 0 if that is unknown. */
export class Away {
  constructor(readonly silent: number) {}
}

/** A message of a watch. */
interface Watched {
  readonly keepalive?: unknown;
  readonly event?: { readonly $case: string } | undefined;
}

function isKeepalive({ keepalive, event }: Watched): boolean {
  return keepalive !== undefined || event?.$case === "keepalive";
}

/** When the sidecar was last heard on one stream, if it sends keepalives there. */
class Heard {
  private at: number | undefined;
  private timer: NodeJS.Timeout | undefined;

  /** Takes in a message. */
  note(message: Watched): void {
    if (this.at !== undefined || isKeepalive(message)) {
      this.at = before();
    }
  }

  /** Calls silent if no message follows. */
  expect(silent: () => void): void {
    clearTimeout(this.timer);
    if (this.at !== undefined) {
      this.timer = setTimeout(silent, SILENCE_TIMEOUT * 1000);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  away(): Away {
    return new Away(this.at === undefined ? 0 : now() - this.at);
  }
}

/** What streams are asked for: the sidecar is heard five times within SILENCE_TIMEOUT, and no proxy cuts them as silent. */
export const KEEPALIVES = duration(SILENCE_TIMEOUT / 5);

/** Opens a watch. */
export function watch<Request extends { keepalive?: Duration | undefined }, Message>(
  method: (request: Request) => ClientReadableStream<Message>,
  request: Omit<Request, "keepalive">,
): ClientReadableStream<Message> {
  return start(method, { ...request, keepalive: KEEPALIVES } as Request);
}

/**
 * What a watch sends; throws SidekeeperError when it has ended, which it does not do by itself, or when the sidecar falls silent. A message
 * is taken from the stream when the one before it has been, so that the sidecar skips what a slow reader has no time for.
 */
export async function* messages<Message extends Watched>(
  stream: ClientReadableStream<Message>,
  signal?: AbortSignal,
  heard = new Heard(),
): AsyncGenerator<Message, never> {
  const queue: Message[] = []; // of one message, and those that the stream had begun to hand over
  let failed: Error | undefined;
  let wake: () => void = () => undefined;
  const abort = (): void => {
    failed ??= signal?.reason as Error;
    wake();
  };
  const away = (message: string): void => {
    failed ??= new SidekeeperError(status.UNAVAILABLE, { message });
    wake();
  };
  const silent = (): void => away("the sidecar is silent");
  signal?.addEventListener("abort", abort, { once: true });
  listen(
    stream,
    (message) => {
      heard.note(message);
      if (isKeepalive(message)) {
        heard.expect(silent);
      } else {
        heard.stop();
        stream.pause();
        queue.push(message);
        wake();
      }
    },
    (error) => {
      failed ??= error;
      away("the sidecar ended the stream");
    },
  );
  try {
    signal?.throwIfAborted();
    for (;;) {
      const next = queue.shift();
      if (next !== undefined) {
        yield next;
      } else if (failed !== undefined) {
        throw failed;
      } else {
        heard.expect(silent);
        stream.resume();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    heard.stop();
    signal?.removeEventListener("abort", abort);
    stream.cancel();
  }
}

/** What a watch sends that is opened again when the sidecar or the ensemble is away; Away each time it has ended so. */
export async function* reopened<Message extends Watched>(
  open: () => ClientReadableStream<Message>,
  signal?: AbortSignal,
): AsyncGenerator<Message | Away, never> {
  const backoff = new Backoff();
  for (;;) {
    const heard = new Heard();
    let told = false;
    try {
      for await (const message of messages(open(), signal, heard)) {
        told = true;
        backoff.reset();
        yield message;
      }
    } catch (error) {
      if (!mayHeal(error, told)) {
        throw error;
      }
    }
    yield heard.away();
    await sleep(backoff.next(), signal);
  }
}

/** What a watch of views shows, also across restarts of the sidecar. While the sidecar is away, the last view is stale. */
export async function* views<Message extends Watched & { readonly stale: boolean }, View extends { readonly stale: boolean }>(
  open: () => ClientReadableStream<Message>,
  viewFrom: (message: Message) => View,
  signal?: AbortSignal,
): AsyncGenerator<View, void> {
  let last: View | undefined;
  for await (const message of reopened(open, signal)) {
    if (!(message instanceof Away)) {
      last = viewFrom(message);
    } else if (last === undefined || last.stale) {
      continue;
    } else {
      last = { ...last, stale: true };
    }
    yield last;
  }
}
