/** gRPC: interceptors. */

import {
  InterceptingCall,
  type Interceptor,
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from "@grpc/grpc-js";

import type { Gate } from "./fence_gate.js";
import { HEADER, parse, render } from "./fence_header.js";
import { RefusedError } from "./fence_refusal.js";
import { type Ticket, tickets } from "./guard.js";

/** Sends along the tickets of the locks that are held around a call, as one of a client's `interceptors`. See `tickets`. */
export const clientInterceptor: Interceptor = (options, nextCall) => {
  const carried = tickets();
  return new InterceptingCall(nextCall(options), {
    start: (metadata, listener, next) => {
      if (carried.length > 0) {
        metadata.add(HEADER, render(carried));
      }
      next(metadata, listener);
    },
  });
};

/**
 * Refuses calls that do not pass the gate, as one of a server's `interceptors`; streams when they begin: what they carry later is not
 * looked at.
 */
export function serverInterceptor(gate: Gate): ServerInterceptor {
  return (method, call) => {
    const admit = (metadata: Metadata, next: (metadata: Metadata) => void): void => {
      gate.admit(method.path, valuesOf(metadata)).then(
        () => {
          next(metadata);
        },
        (error: unknown) => {
          const { code, message } =
            error instanceof RefusedError ? error : { code: status.INTERNAL, message: "the gate has failed" };
          call.sendStatus({ code, details: message });
        },
      );
    };
    const listener = new ServerListenerBuilder().withOnReceiveMetadata(admit).build();
    return new ServerInterceptingCall(call, {
      start: (next) => {
        next(listener);
      },
    });
  };
}

/**
 * The tickets of the call that a handler answers, which its gate has let pass. Ticket.guard guards with one what the handler writes through
 * a client, and has it go along with further calls.
 */
export function ticketsOf(metadata: Metadata): Ticket[] {
  return parse(valuesOf(metadata));
}

function valuesOf(metadata: Metadata): string[] {
  return metadata.get(HEADER).map(String);
}
