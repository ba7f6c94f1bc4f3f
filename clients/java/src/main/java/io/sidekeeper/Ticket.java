package io.sidekeeper;

import io.sidekeeper.hold.v1.Guard;
import java.util.List;

/**
 * Names a hold for others, who guard with it what they write for its holder. It is no secret, and
 * good until the lock is released or lost.
 *
 * @param lock the lock's name
 * @param fencingToken the hold's fencing token, larger than 0
 */
public record Ticket(String lock, long fencingToken) {
  /**
   * Names a hold.
   *
   * @param lock as described above
   * @param fencingToken as described above
   */
  public Ticket {
    Rules.given("lock", lock);
  }

  /**
   * Guards with the ticket what this thread writes, through any client, until the scope is closed;
   * see {@link Lock#guard}.
   *
   * @return the scope; close it on this thread
   */
  public GuardScope guard() {
    var ticket =
        io.sidekeeper.hold.v1.Ticket.newBuilder().setLock(lock).setFencingToken(fencingToken);
    return GuardScope.open(null, Guard.newBuilder().setTicket(ticket).build(), List.of(this));
  }
}
