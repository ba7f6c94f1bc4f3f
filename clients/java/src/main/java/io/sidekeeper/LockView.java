package io.sidekeeper;

import java.util.List;
import java.util.Optional;

/**
 * The holders of a lock, and the waiters for it.
 *
 * @param name of the lock
 * @param holders in the order of their grants
 * @param waiters in the order of their turn
 * @param waitersOmitted how many more wait that are not shown
 * @param stale from a watch, whether the ensemble or the sidecar is out of contact, so that this
 *     may be out of date
 */
public record LockView(
    String name,
    List<Contender> holders,
    List<Contender> waiters,
    int waitersOmitted,
    boolean stale) {
  /**
   * Says who leads, if the lock is that of an election.
   *
   * @return the first holder; empty if the lock has none
   */
  public Optional<Contender> leader() {
    return holders.stream().findFirst();
  }
}
