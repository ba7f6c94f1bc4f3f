/** The header that has the tickets of a call: `orders=61, stock/eu=7`. */

import { RefusedError } from "./fence_refusal.js";
import { Ticket, tickets } from "./guard.js";

/** Has the tickets of a call, in gRPC's metadata and in HTTP. */
export const HEADER = "sidekeeper-fence";

/** As many as a write has guards. */
const mostTickets = 16;
const largestToken = 2n ** 63n - 1n;
const ticketForm = /^([A-Za-z0-9._/-]{1,200})=([1-9][0-9]{0,18})$/;

/** Writes tickets as a header has them. */
export function render(carried: readonly Ticket[]): string {
  return carried.map(({ lock, fencingToken }) => `${lock}=${fencingToken}`).join(", ");
}

/** The tickets of the locks that are held here, for a request of whatever library; nothing, if none is. See `tickets`. */
export function headers(): Record<string, string> {
  const carried = tickets();
  return carried.length === 0 ? {} : { [HEADER]: render(carried) };
}

/** Reads the tickets of all headers of a call. Throws RefusedError. */
export function parse(values: readonly string[]): Ticket[] {
  const read = new Map<string, Ticket>();
  const elements = values.flatMap((value) => value.split(",")).map((element) => element.replace(/^[ \t]+|[ \t]+$/g, ""));
  for (const element of elements.filter((element) => element !== "")) {
    const ticket = parseTicket(element);
    if ((read.get(ticket.lock) ?? ticket).fencingToken !== ticket.fencingToken) {
      throw malformed(`two tokens of lock ${ticket.lock}`);
    }
    read.set(ticket.lock, ticket);
    if (read.size > mostTickets) {
      throw malformed(`more than ${mostTickets} tickets`);
    }
  }
  return [...read.values()];
}

/**
 * Reads one ticket. Throws RefusedError.
 *
 * @internal
 */
export function parseTicket(element: string): Ticket {
  const [, lock, digits] = ticketForm.exec(element) ?? [];
  const token = BigInt(digits ?? 0);
  if (lock === undefined || token > largestToken) {
    throw malformed("not lock=token");
  }
  return new Ticket(lock, token);
}

function malformed(why: string): RefusedError {
  return new RefusedError("malformed", `${HEADER}: ${why}`);
}
