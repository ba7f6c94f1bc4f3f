/** The configuration. */

import { AsyncResource } from "node:async_hooks";

import type { ClientReadableStream } from "@grpc/grpc-js";

import { before, now } from "./clock.js";
import type { SidekeeperError } from "./errors.js";
import {
  type Change,
  type ConfigServiceService,
  Consistency,
  type Operation,
  type Precondition as WirePrecondition,
  type PutRequest,
  type WatchRequest,
  type WatchResponse,
} from "./gen/sidekeeper/config/v1/config.js";
import { guardsOf } from "./guard.js";
import type { Streams } from "./held.js";
import { bytes, checkArguments, checkOptions, flag } from "./options.js";
import { Away, type Stub, callIdempotent, callNonIdempotent, reopened, watch } from "./transport.js";
import { type ConfigChange, type ConfigEvent, type Entry, entryFrom } from "./types.js";

/** A condition on a key: it has this version, is missing, or exists. */
export type Precondition = { readonly version: number } | "missing" | "exists";

function conditionOf(precondition?: Precondition): WirePrecondition | undefined {
  checkArguments({ precondition });
  switch (precondition) {
    case undefined:
      return undefined;
    case "missing":
      return { condition: { $case: "mustNotExist", value: true } };
    case "exists":
      return { condition: { $case: "mustExist", value: true } };
    default:
      return { condition: { $case: "version", value: precondition.version } };
  }
}

function putOf(key: string, value: Uint8Array | string, precondition?: Precondition): PutRequest {
  checkArguments({ key });
  bytes("value", value);
  const content = typeof value === "string" ? new TextEncoder().encode(value) : value;
  return { key, content: { $case: "value", value: Buffer.from(content) }, precondition: conditionOf(precondition), guards: [] };
}

/** A transaction: at most 100 operations, each on a different key, of which all or none are applied. */
export class Commit {
  /** @internal */
  readonly operations: Operation[] = [];

  /** Adds a write. */
  put(key: string, value: Uint8Array | string, precondition?: Precondition): this {
    return this.add({ $case: "put", value: putOf(key, value, precondition) });
  }

  /** Adds a deletion. */
  delete(key: string, precondition?: Precondition): this {
    checkArguments({ key });
    return this.add({
      $case: "delete",
      value: { key, precondition: conditionOf(precondition), recursive: false, guards: [] },
    });
  }

  /** Adds a condition on a key that is not written. */
  check(key: string, precondition: Precondition): this {
    checkArguments({ key });
    return this.add({ $case: "check", value: { key, precondition: conditionOf(precondition) } });
  }

  private add(operation: Exclude<Operation["operation"], undefined>): this {
    this.operations.push({ operation });
    return this;
  }
}

/**
 * The configuration. Values are at most 1,000,000 bytes; strings are written as UTF-8.
 *
 * What the body of Client.withLock writes is written only while the lock is held (see Lock.guard); otherwise it is GuardLostError.
 */
export class Config {
  /** @internal */
  constructor(
    private readonly stub: Stub<typeof ConfigServiceService>,
    private readonly streams: Streams,
  ) {}

  /**
   * Reads a key as the sidecar last saw it; with linearizable, the result reflects every write that completed before
   * this call. Rejects with KeyNotFoundError.
   */
  async get(key: string, options: { readonly linearizable?: boolean } = {}): Promise<Entry> {
    checkArguments({ key });
    checkOptions(options, { linearizable: flag });
    const consistency = options.linearizable === true ? Consistency.LINEARIZABLE : Consistency.UNSPECIFIED;
    const reply = await callIdempotent(this.stub.get, { key, consistency, asText: false });
    return entryFrom(reply.entry);
  }

  /**
   * Writes a key and returns the entry without its value. Rejects with PreconditionFailedError; after OutcomeUnknownError it may have
   * been written, or may be written later.
   */
  async put(key: string, value: Uint8Array | string, precondition?: Precondition): Promise<Entry> {
    const request = { ...putOf(key, value, precondition), guards: guardsOf(this.streams) };
    const reply = await callNonIdempotent(this.stub.put, request);
    return { ...entryFrom(undefined), key, version: reply.version, revision: reply.revision };
  }

  /** Deletes a key. Rejects with KeyNotFoundError, PreconditionFailedError, KeyHasChildrenError. */
  async delete(key: string, precondition?: Precondition): Promise<void> {
    checkArguments({ key });
    const request = { key, precondition: conditionOf(precondition), recursive: false, guards: guardsOf(this.streams) };
    await callNonIdempotent(this.stub.delete, request);
  }

  /** All keys with their values, in the order of keys, or those at and below a prefix of whole segments. */
  async *list(prefix = ""): AsyncGenerator<Entry, void> {
    checkArguments({ prefix });
    let pageToken = "";
    do {
      const request = { prefix, pageSize: 1000, pageToken, asText: false };
      const reply = await callIdempotent(this.stub.list, request);
      for (const entry of reply.entries) {
        yield entryFrom(entry);
      }
      pageToken = reply.nextPageToken;
    } while (pageToken !== "");
  }

  /**
   * Applies a Commit and returns an entry without its value for each operation; only those of puts are filled in. If a
   * precondition failed, nothing was applied, and the metadata of PreconditionFailedError contain the `operation`, counted from 0, the
   * `key`, and its `version` if it exists.
   */
  async commit(commit: Commit): Promise<Entry[]> {
    const reply = await callNonIdempotent(this.stub.commit, { operations: commit.operations, guards: guardsOf(this.streams) });
    return reply.results.map(({ version, revision }, i) => {
      const { operation } = commit.operations[i] ?? {};
      const key = operation?.$case === "put" ? operation.value.key : "";
      return { ...entryFrom(undefined), key, version, revision };
    });
  }

  /** Yields the state of some keys, then each change, also across restarts of the sidecar. The signal ends it. */
  watch(keys: readonly string[], signal?: AbortSignal): AsyncGenerator<ConfigEvent, never> {
    checkArguments({ keys, signal });
    return this.events({ keys: [...keys], prefix: "", asText: false }, signal);
  }

  /**
   * Yields the state of all keys at and below a prefix of whole segments, then each change, also across restarts of the sidecar.
   * The signal ends it.
   */
  watchPrefix(prefix = "", signal?: AbortSignal): AsyncGenerator<ConfigEvent, never> {
    checkArguments({ prefix, signal });
    return this.events({ keys: [], prefix, asText: false }, signal);
  }

  private async *events(request: Omit<WatchRequest, "keepalive">, signal?: AbortSignal): AsyncGenerator<ConfigEvent, never> {
    const open = (): ClientReadableStream<WatchResponse> => watch(this.stub.watch, request);
    const state: ConfigChange[] = [];
    let stale = false;
    for await (const message of reopened<WatchResponse>(open, signal)) {
      const event = eventFrom(message, state, stale);
      if (event !== undefined) {
        stale = event.kind === "stale" || (stale && event.kind === "changed");
        yield event;
      }
    }
    throw new Error("a stream that is opened again has no end");
  }

  /** Copies all keys at and below a prefix, and returns when the copy is complete. Close it. */
  async view(prefix = ""): Promise<ConfigView> {
    const stop = new AbortController();
    const view = new ConfigView(stop, this.streams);
    await view.follow(this.watchPrefix(prefix, stop.signal));
    return view;
  }
}

/** The event of a message; undefined for part of a state that is not complete yet, which is kept. */
function eventFrom(message: WatchResponse | Away, state: ConfigChange[], stale: boolean): ConfigEvent | undefined {
  if (message instanceof Away) {
    state.length = 0;
    return stale ? undefined : { kind: "stale", changes: [], age: message.silent };
  }
  const { event } = message;
  switch (event?.$case) {
    case "entries":
      state.push(...event.value.entries.map((entry) => written(entryFrom(entry))));
      return undefined;
    case "synced":
      return { kind: "state", changes: state.splice(0), age: 0 };
    case "changes":
      return { kind: "changed", changes: event.value.changes.map(changeFrom), age: 0 };
    case "stale":
    case "fresh":
      return { kind: event.$case, changes: [], age: 0 };
    default: // something that this client does not know
      return undefined;
  }
}

function written(entry: Entry, coalesced = false, recreated = false): ConfigChange {
  return { entry, deleted: false, coalesced, recreated };
}

function changeFrom(wire: Change): ConfigChange {
  if (wire.change?.$case === "deleted") {
    const entry = { ...entryFrom(undefined), key: wire.change.value.key };
    return { entry, deleted: true, coalesced: false, recreated: false };
  }
  const put = wire.change?.value;
  return written(entryFrom(put?.entry), put?.coalesced, put?.recreated);
}

/** A copy of part of the configuration that follows its changes and knows how old it may be. */
export class ConfigView {
  private known = new Map<string, Entry>();
  private staleSince: number | undefined;
  private failure: SidekeeperError | undefined;
  private readonly listeners = new Set<() => void>();

  /** @internal */
  constructor(
    private readonly stop: AbortController,
    private readonly streams: Streams,
  ) {}

  /** The entry of a key, if there is one. */
  get(key: string): Entry | undefined {
    return this.known.get(key);
  }

  /** The entries as they are now. */
  entries(): ReadonlyMap<string, Entry> {
    return new Map(this.known);
  }

  /**
   * For how many seconds contact with the ensemble or the sidecar has been lost; 0 while the copy is up to date. A silent sidecar is noticed
   * after 15 seconds, and the age counts from when it was last heard.
   */
  age(): number {
    return this.staleSince === undefined ? 0 : Math.max(now() - this.staleSince, Number.EPSILON);
  }

  /** Why the copy is no longer updated; undefined while it is. */
  get error(): SidekeeperError | undefined {
    return this.failure;
  }

  /**
   * Calls listener, in the async context of this call, after every change, and when the copy is no longer updated. What it throws is
   * logged. Call the returned function to stop that.
   */
  onChange(listener: () => void): () => void {
    const bound = AsyncResource.bind(listener);
    this.listeners.add(bound);
    return () => this.listeners.delete(bound);
  }

  /** Stops updating the copy. Its contents remain readable. */
  close(): void {
    this.listeners.clear();
    this.stop.abort();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal Follows in the background, and returns when all is known. */
  async follow(events: AsyncIterable<ConfigEvent>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const following = async (): Promise<void> => {
        for await (const event of events) {
          this.take(event);
          if (event.kind === "state") {
            resolve();
          }
        }
      };
      following().catch((error: unknown) => {
        this.staleSince ??= before();
        if (!this.stop.signal.aborted) {
          this.failure = error as SidekeeperError;
          this.notify();
        }
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  private take(event: ConfigEvent): void {
    if (event.kind === "stale") {
      this.staleSince = before() - event.age;
      return;
    }
    if (event.kind === "state") {
      this.known = new Map();
    }
    for (const { entry, deleted } of event.changes) {
      if (deleted) {
        this.known.delete(entry.key);
      } else {
        this.known.set(entry.key, entry);
      }
    }
    if (event.kind !== "changed") {
      this.staleSince = undefined;
    }
    if (event.kind !== "fresh") {
      this.notify();
    }
  }

  private notify(): void {
    for (const listener of this.listeners) {
      this.streams.notify("a view of the configuration", listener, undefined);
    }
  }
}
