package io.sidekeeper;

import io.sidekeeper.hold.v1.Contender;
import io.sidekeeper.semaphore.v1.View;
import java.util.List;
import java.util.OptionalInt;

/**
 * The holders of a semaphore's permits, and the waiters for some.
 *
 * @param name of the semaphore
 * @param limit how many permits there are
 * @param held how many of them are held; more than limit after it has shrunk
 * @param holders in the order of their grants
 * @param waiters in the order of their turn
 * @param waitersOmitted how many more wait that are not shown
 * @param quarantines the numbers that no permit bears and that rest, in order
 * @param stale from a watch, whether the ensemble or the sidecar is out of contact, so that this
 *     may be out of date
 */
public record SemaphoreView(
    String name,
    int limit,
    int held,
    List<PermitContender> holders,
    List<PermitContender> waiters,
    int waitersOmitted,
    List<Quarantine> quarantines,
    boolean stale) {
  static SemaphoreView of(View wire, boolean stale) {
    return new SemaphoreView(
        wire.getName(),
        wire.getLimit(),
        wire.getHeld(),
        wire.getHoldersList().stream().map(SemaphoreView::contender).toList(),
        wire.getWaitersList().stream().map(SemaphoreView::contender).toList(),
        wire.getWaitersOmitted(),
        wire.getQuarantinesList().stream().map(Quarantine::of).toList(),
        stale);
  }

  private static PermitContender contender(Contender wire) {
    return new PermitContender(
        wire.getPermits(),
        wire.getIdentity(),
        wire.getOwner(),
        wire.getMetadataMap(),
        wire.getToken(),
        Wire.duration(wire.getAge()),
        wire.getForeign(),
        wire.getRevocationRequested(),
        wire.hasNumber() ? OptionalInt.of(wire.getNumber()) : OptionalInt.empty());
  }
}
