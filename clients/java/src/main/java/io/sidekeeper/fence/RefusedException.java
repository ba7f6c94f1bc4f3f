package io.sidekeeper.fence;

import io.sidekeeper.Ticket;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A call does not pass a gate. Nothing of it has been carried out. */
public final class RefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final Reason reason;
  private final transient @Nullable Ticket ticket;
  private final long largest;

  private RefusedException(
      Reason reason,
      String message,
      @Nullable Ticket ticket,
      long largest,
      @Nullable Throwable cause) {
    super(message, cause);
    this.reason = reason;
    this.ticket = ticket;
    this.largest = largest;
  }

  static RefusedException malformed(String why) {
    return new RefusedException(Reason.MALFORMED, FenceHeader.NAME + ": " + why, null, 0, null);
  }

  static RefusedException missing(String of) {
    String message = FenceHeader.NAME + ": no ticket" + of;
    return new RefusedException(Reason.MISSING, message, null, 0, null);
  }

  static RefusedException stale(Ticket ticket, long largest) {
    String message =
        "lock %s: fencing token %d is stale, since %d has been seen: the lock was granted to another holder"
            .formatted(ticket.lock(), ticket.fencingToken(), largest);
    return new RefusedException(Reason.STALE, message, ticket, largest, null);
  }

  static RefusedException notHeld(Ticket ticket, long current) {
    String message =
        "lock %s is not held with fencing token %d, %s"
            .formatted(
                ticket.lock(),
                ticket.fencingToken(),
                current == 0 ? "nor with any other" : "but with " + current);
    return new RefusedException(Reason.NOT_HELD, message, ticket, current, null);
  }

  static RefusedException undecided(Throwable cause) {
    String message =
        "whether the tickets of " + FenceHeader.NAME + " are stale cannot be told at present";
    return new RefusedException(Reason.UNDECIDED, message, null, 0, cause);
  }

  /**
   * Says why.
   *
   * @return the reason
   */
  public Reason reason() {
    return reason;
  }

  /**
   * Says which ticket it is about.
   *
   * @return that of the call, if it is stale or not held
   */
  public Optional<Ticket> ticket() {
    return Optional.ofNullable(ticket);
  }

  /**
   * Says which token stands against it.
   *
   * @return the token that the gate has seen, if that of the call is stale; that the lock is held
   *     with, if it is not held; 0 if the lock has no holder
   */
  public long largest() {
    return largest;
  }
}
