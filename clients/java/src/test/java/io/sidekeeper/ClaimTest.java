package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LostException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How a claim ends. */
class ClaimTest {
  private final Object monitor = new Object();
  private final Claim lease = new Claim(monitor, "lease", LostException::new, null);
  private final Claim lock = new Claim(monitor, "lock orders", LostException::new, null);
  private final List<String> calls = new ArrayList<>();

  @Test
  void whatAListenerThrowsKeepsNobodyFromLearningOfTheEnd() {
    lease.streamsOver(() -> calls.add("lease's stream"));
    lock.streamsOver(
        () -> {
          throw new IllegalStateException("stream");
        });
    lock.dependsOn(lease);
    for (Claim claim : List.of(lock, lease)) {
      claim.stopsOver(
          () -> {
            throw new IllegalStateException("stop");
          });
      claim.whenOver(
          () -> {
            throw new OutOfMemoryError("unable to create native thread");
          });
      claim.whenOver(() -> calls.add(claim.what));
    }
    lease.lose(Calls.closed());
    assertEquals(List.of("lease", "lock orders", "lease's stream"), calls);
    assertTrue(lock.ended.isDone());
    assertTrue(lease.ended.isDone());
  }

  @Test
  void allBodiesAreStoppedBeforeAnybodyIsTold() {
    Claim other = new Claim(monitor, "lock stock", LostException::new, null);
    for (Claim claim : List.of(lock, other)) {
      claim.dependsOn(lease);
      claim.whenOver(() -> calls.add("tell " + claim.what));
      claim.stopsOver(() -> calls.add("stop " + claim.what));
    }
    lease.lose(Calls.closed());
    assertEquals(
        List.of("stop lock orders", "stop lock stock", "tell lock orders", "tell lock stock"),
        calls);
  }

  @Test
  void aLeaseWhoseTimeIsOverIsLostOnceSomethingStandsOnIt() {
    long ago = Clock.before() - 2_000_000_000;
    lease.carries(() -> false);
    lease.prove(ago, 1_000_000_000);
    lease.expire();
    assertEquals(0, lease.validFor());
    assertNull(lease.lost());
    lease.prove(ago, 60_000_000_000L);
    assertTrue(lease.validFor() > 0);
    Claim late = new Claim(monitor, "lease", LostException::new, null);
    late.carries(() -> false);
    late.prove(ago, 1_000_000_000);
    lock.dependsOn(late);
    assertEquals(0, late.validFor());
    assertEquals("LEASE_LOST", late.lost().why().reason());
    assertEquals("LEASE_LOST", lock.lost().why().reason());
  }

  @Test
  void whatDependsOnALeaseThatIsClosedIsLost() {
    lock.dependsOn(lease);
    lease.end(null);
    assertEquals("LEASE_CLOSED", lock.lost().why().reason());
    Claim late = new Claim(monitor, "lock stock", LostException::new, null);
    late.dependsOn(lease);
    assertEquals("LEASE_CLOSED", late.lost().why().reason());
  }
}
