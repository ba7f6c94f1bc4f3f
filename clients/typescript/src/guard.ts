/** Guards: holds that must last for a write to be carried out. */

import { AsyncLocalStorage } from "node:async_hooks";

import type { Guard as WireGuard } from "./gen/sidekeeper/hold/v1/hold.js";

/** A guard is for what one client writes; for every client's, if that is undefined. */
interface Guard {
  readonly wire: WireGuard;
  readonly client?: object;
  /** Those of the hold that exclude all others. */
  readonly tickets: readonly Ticket[];
}

const storage = new AsyncLocalStorage<readonly Guard[]>();

function guarded<T>(guard: Guard, body: () => T): T {
  return storage.run([...(storage.getStore() ?? []), guard], body);
}

/**
 * Runs body, and guards with the hold what the client writes in it.
 *
 * @internal
 */
export function guardedByHold<T>(holdId: string, client: object, exclusive: readonly Ticket[], body: () => T): T {
  return guarded({ wire: { hold: { $case: "holdId", value: holdId } }, client, tickets: exclusive }, body);
}

/**
 * The guards of what the client writes here.
 *
 * @internal
 */
export function guardsOf(client: object): WireGuard[] {
  const all = storage.getStore() ?? [];
  return all.filter((guard) => guard.client === undefined || guard.client === client).map(({ wire }) => wire);
}

/**
 * Names a hold for others, who guard with it what they write for its holder. It is no secret, and good until the lock is released or
 * lost.
 */
export class Ticket {
  constructor(
    /** The lock's name. */
    readonly lock: string,
    /** The hold's fencing token, larger than 0. */
    readonly fencingToken: bigint,
  ) {}

  /** Runs body and returns its result. What it writes, through any client, is guarded with the ticket, as with Lock.guard. */
  guard<T>(body: () => T): T {
    const ticket = { lock: this.lock, fencingToken: this.fencingToken };
    return guarded({ wire: { hold: { $case: "ticket", value: ticket } }, tickets: [this] }, body);
  }
}

/**
 * The tickets of the holds that guard what is written here, outermost first: what `fence` sends along to whatever else the locks protect.
 * Locks that are held in the mode `read` have none here, since readers do not exclude each other.
 */
export function tickets(): Ticket[] {
  const all = (storage.getStore() ?? []).flatMap((guard) => guard.tickets);
  return all.filter(
    (ticket, at) =>
      all.findIndex(({ lock, fencingToken }) => lock === ticket.lock && fencingToken === ticket.fencingToken) === at,
  );
}

/** How it stood with a ticket's hold at some moment of the call. */
export interface Verification {
  /** Whether the lock was held with the ticket's fencing token. */
  readonly held: boolean;
  /** The fencing token that the lock was held with: of several holders, the first one's; 0 if the lock had no holder. */
  readonly currentToken: bigint;
}

/** What a lock is held with. */
export interface CurrentToken {
  /** The lock's name. */
  readonly lock: string;
  /** That of the first holder; 0 if the lock has no holder. */
  readonly fencingToken: bigint;
  /** Whether the token may be out of date, as the sidecar has lost contact with the ensemble. */
  readonly stale: boolean;
}

/** Runs body and returns its result. What it writes is not guarded, although a lock is held around it. */
export function unguarded<T>(body: () => T): T {
  return storage.run([], body);
}
