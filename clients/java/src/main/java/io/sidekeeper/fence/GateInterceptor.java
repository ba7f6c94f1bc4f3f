package io.sidekeeper.fence;

import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.sidekeeper.Ticket;
import java.util.List;

/**
 * Refuses calls that do not pass a gate; streams when they begin: what they carry later is not
 * looked at. It blocks the thread on which the call is begun, which must not be a direct
 * executor's.
 */
public final class GateInterceptor implements ServerInterceptor {
  /**
   * The tickets of the call that a handler answers. {@link Ticket#guard} guards with one what the
   * handler writes through a client, and has it go along with further calls.
   */
  public static final Context.Key<List<Ticket>> TICKETS = Context.key("sidekeeper tickets");

  private final Gate gate;

  /**
   * Makes one.
   *
   * @param gate that calls must pass
   */
  public GateInterceptor(Gate gate) {
    this.gate = gate;
  }

  @Override
  public <A, B> ServerCall.Listener<A> interceptCall(
      ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
    Iterable<String> values = headers.getAll(TicketInterceptor.KEY);
    try {
      String method = "/" + call.getMethodDescriptor().getFullMethodName();
      List<Ticket> tickets = gate.admit(method, values == null ? List.of() : values);
      return Contexts.interceptCall(
          Context.current().withValue(TICKETS, tickets), call, headers, next);
    } catch (RefusedException refused) {
      call.close(refused.reason().status().withDescription(refused.getMessage()), new Metadata());
      return new ServerCall.Listener<>() {};
    }
  }
}
