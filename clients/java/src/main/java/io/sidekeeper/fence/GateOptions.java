package io.sidekeeper.fence;

import io.sidekeeper.Ticket;
import io.sidekeeper.Verification;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Which calls pass a gate: {@code new GateOptions().locks("orders")}.
 *
 * @param locks those of which each call must have a ticket. It should name what guards the service:
 *     else a ticket of any lock will do
 * @param withoutTicket says which calls pass without the tickets, by gRPC's method, as in
 *     /shop.v1.Orders/List, or by whatever else {@link Gate#admit} is given. The tickets that such
 *     a call has must still not be stale
 * @param verify {@code client::verify}: asks the sidecar whether the ticket's hold lasts, before
 *     the gate believes its token. Without it, any caller can keep all others out with an invented
 *     token. It costs each call a request to the ensemble
 */
public record GateOptions(
    List<String> locks, Predicate<String> withoutTicket, @Nullable Verifier verify) {
  /**
   * Copies what it is given.
   *
   * @param locks as described above
   * @param withoutTicket as described above
   * @param verify as described above
   */
  public GateOptions {
    locks = List.copyOf(locks);
  }

  /** Lets a ticket of any lock pass that is not stale, and nothing without one. */
  public GateOptions() {
    this(List.of(), call -> false, null);
  }

  /**
   * Says of which locks each call must have a ticket.
   *
   * @param locks their names
   * @return the same with this changed
   */
  public GateOptions locks(String... locks) {
    return new GateOptions(List.of(locks), withoutTicket, verify);
  }

  /**
   * Says which calls pass without tickets.
   *
   * @param calls true for those
   * @return the same with this changed
   */
  public GateOptions withoutTicket(Predicate<String> calls) {
    return new GateOptions(locks, calls, verify);
  }

  /**
   * Has the sidecar asked.
   *
   * @param verify {@code client::verify}
   * @return the same with this changed
   */
  public GateOptions verify(Verifier verify) {
    return new GateOptions(locks, withoutTicket, verify);
  }

  /** Says whether a ticket's hold lasts. */
  @FunctionalInterface
  public interface Verifier {
    /**
     * Asks.
     *
     * @param ticket whose hold it is about
     * @return how it stands with it
     * @throws Exception if that cannot be told
     */
    Verification verify(Ticket ticket) throws Exception;
  }
}
