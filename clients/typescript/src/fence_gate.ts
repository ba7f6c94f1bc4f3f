/** Gates: which calls pass. */

import { HEADER, parse } from "./fence_header.js";
import { RefusedError, compare } from "./fence_refusal.js";
import type { Ticket, Verification } from "./guard.js";
import { type Rules, callback, checkOptions, having, texts } from "./options.js";
import type { Logger } from "./types.js";

/**
 * Remembers the largest fencing token of each lock. All instances of a service that guard the same thing share one, and it outlives them:
 * what it forgets lets a late call pass.
 */
export interface Store {
  /**
   * Makes token the mark of the lock if it is larger, and returns the mark: token itself, or a larger one. When it settles the mark is as
   * durable as the store makes it. Of two calls at once, one sees the mark of the other.
   */
  raise(lock: string, token: bigint): Promise<bigint>;
}

export interface GateOptions {
  /** The locks of which each call must have a ticket. It should name what guards the service: else a ticket of any lock will do. */
  readonly locks?: readonly string[];
  /**
   * Says which calls pass without the tickets, by gRPC's method, as in /shop.v1.Orders/List, or by whatever else `admit` is given. The
   * tickets that such a call has must still not be stale.
   */
  readonly withoutTicket?: (call: string) => boolean;
  /**
   * Client.verify: asks the sidecar whether the ticket's hold lasts, before the gate believes its token. Without it, any caller can keep
   * all others out with an invented token. It costs each call a request to the ensemble.
   */
  readonly verify?: (ticket: Ticket) => Promise<Verification>;
  /** Is told why a call is undecided. */
  readonly logger?: Pick<Logger, "error">;
}

const GATE_OPTIONS: Rules<GateOptions> = { locks: texts, withoutTicket: callback, verify: callback, logger: having("error") };

/** Lets those calls pass whose tickets are not stale. */
export class Gate {
  constructor(
    private readonly store: Store,
    private readonly options: GateOptions = {},
  ) {
    checkOptions(options, GATE_OPTIONS);
  }

  /**
   * Lets a call pass, which raises the marks of its tickets, or throws RefusedError, whose cause is what has failed if it is undecided.
   * `values` are those of HEADER. A ticket may become stale right afterwards: a service whose effects come late compares the token there
   * again.
   */
  async admit(call: string, values: readonly string[]): Promise<Ticket[]> {
    const tickets = parse(values);
    const missing = this.missing(tickets);
    if (missing !== undefined && this.options.withoutTicket?.(call) !== true) {
      throw missing;
    }
    try {
      for (const ticket of tickets) {
        await this.verify(ticket); // before any mark is raised: marks are for holders alone
      }
      for (const ticket of tickets) {
        await this.raise(ticket);
      }
    } catch (error) {
      throw error instanceof RefusedError ? error : this.undecided(call, error);
    }
    return tickets;
  }

  private undecided(call: string, cause: unknown): RefusedError {
    this.options.logger?.error(`a call cannot be fenced: ${call}`, cause);
    return new RefusedError("undecided", `whether the tickets of ${HEADER} are stale cannot be told at present`, { cause });
  }

  private missing(tickets: readonly Ticket[]): RefusedError | undefined {
    const { locks = [] } = this.options;
    const lock = locks.find((lock) => !tickets.some((ticket) => ticket.lock === lock));
    if (lock !== undefined) {
      return new RefusedError("missing", `${HEADER}: no ticket of lock ${lock}`);
    }
    return locks.length + tickets.length === 0 ? new RefusedError("missing", `${HEADER}: no ticket`) : undefined;
  }

  private async verify(ticket: Ticket): Promise<void> {
    const { held, currentToken } = (await this.options.verify?.(ticket)) ?? { held: true, currentToken: 0n };
    if (!held) {
      const otherwise = currentToken === 0n ? "nor with any other" : `but with ${currentToken}`;
      const message = `lock ${ticket.lock} is not held with fencing token ${ticket.fencingToken}, ${otherwise}`;
      throw new RefusedError("not held", message, { ticket, largest: currentToken });
    }
  }

  private async raise(ticket: Ticket): Promise<void> {
    compare(ticket, await this.store.raise(ticket.lock, ticket.fencingToken));
  }
}
