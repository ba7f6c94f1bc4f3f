package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Permits of semaphores. */
@Timeout(60)
class PermitsTest {
  private static final PermitsOptions ONE = new PermitsOptions();
  private static final PermitsOptions NUMBERED = ONE.numbered(true);

  private Sidecar sidecar;
  private Client client;

  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
  }

  @AfterEach
  void disconnect() {
    client.close();
    sidecar.close();
  }

  private static void refused(String reason, Executable call) {
    assertEquals(reason, assertThrows(SidekeeperException.class, call).reason());
  }

  @Test
  void permitsAreHeldUpToTheLimit() throws Exception {
    client.createSemaphore("api", 3);
    refused("SEMAPHORE_EXISTS", () -> client.createSemaphore("api", 4));
    Permits first = client.acquirePermits("api", ONE.permits(2).owner("first"));
    Permits second = client.acquirePermits("api", ONE);
    assertTrue(first.isValid() && second.token() > first.token());
    refused("SEMAPHORE_FULL", () -> client.acquirePermits("api", ONE.waitTimeout(Duration.ZERO)));
    refused("TOO_MANY_PERMITS", () -> client.acquirePermits("api", ONE.permits(4)));
    refused("SEMAPHORE_NOT_FOUND", () -> client.acquirePermits("other", ONE));
    SemaphoreView view = client.getSemaphore("api");
    assertEquals(3, view.limit());
    assertEquals(3, view.held());
    assertEquals("first", view.holders().get(0).owner());
    assertEquals(2, view.holders().get(0).permits());
    List<Integer> positions = new CopyOnWriteArrayList<>();
    PermitsListener listener =
        new PermitsListener() {
          @Override
          public void queued(int position) {
            positions.add(position);
          }
        };
    CompletableFuture<Permits> waiting =
        client.acquirePermitsAsync("api", ONE.permits(2).listener(listener));
    Sidecar.until("it waits", () -> !positions.isEmpty());
    assertEquals(0, positions.get(0));
    first.release();
    assertFalse(first.isValid());
    waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS).close();
    second.releaseAsync().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertEquals(0, client.getSemaphore("api").held());
  }

  @Test
  void permitsOnALeaseEndWithIt() throws Exception {
    client.createSemaphore("leased", 1);
    Lease lease = client.openLease(new LeaseOptions());
    Permits held = client.acquirePermits("leased", ONE.lease(lease));
    refused("ALREADY_CONTENDING", () -> client.acquirePermits("leased", ONE.lease(lease)));
    lease.close();
    Sidecar.until("they are lost", () -> held.error().isPresent());
    assertThrows(LostException.class, held::release);
    try (Permits again = client.acquirePermits("leased", ONE)) {
      assertTrue(again.isValid());
    }
  }

  @Test
  void aLossIsTold() throws Exception {
    client.createSemaphore("lost", 1);
    CompletableFuture<LostException> told = new CompletableFuture<>();
    PermitsListener listener =
        new PermitsListener() {
          @Override
          public void lost(LostException lost) {
            told.complete(lost);
          }
        };
    Permits held = client.acquirePermits("lost", ONE.listener(listener));
    sidecar.expireAll();
    assertEquals("LEASE_LOST", told.get(Sidecar.PATIENT, TimeUnit.SECONDS).why().reason());
    assertThrows(LostException.class, held::close);
    client.acquirePermits("lost", ONE).close();
  }

  @Test
  void aPermitBearsANumberIfItIsAskedFor() throws Exception {
    client.createSemaphore("ids", 3);
    Permits first = client.acquirePermits("ids", NUMBERED);
    Permits second = client.acquirePermits("ids", NUMBERED);
    Permits plain = client.acquirePermits("ids", ONE);
    List<OptionalInt> expected = List.of(OptionalInt.of(0), OptionalInt.of(1), OptionalInt.empty());
    assertEquals(expected, List.of(first.number(), second.number(), plain.number()));
    SemaphoreView view = client.getSemaphore("ids");
    assertEquals(expected, view.holders().stream().map(PermitContender::number).toList());
    assertEquals(List.of(), view.quarantines());
    first.release();
    try (Permits third = client.acquirePermits("ids", NUMBERED.waitTimeout(Duration.ZERO))) {
      assertEquals(OptionalInt.of(0), third.number());
    }
    refused("INVALID_FIELD", () -> client.acquirePermits("ids", ONE.quarantine(Duration.ZERO)));
  }

  @Test
  void aNumberThatWasLostRests() throws Exception {
    client.createSemaphore("ids", 3);
    Permits lost = client.acquirePermits("ids", NUMBERED.quarantine(Duration.ofHours(1)));
    sidecar.expireAll();
    Sidecar.until("it is lost", () -> lost.error().isPresent());
    assertEquals(OptionalInt.of(0), lost.number());
    assertEquals(
        List.of(new Quarantine(0, Optional.empty())), client.getSemaphore("ids").quarantines());
    try (Permits other = client.acquirePermits("ids", NUMBERED.quarantine(Duration.ZERO))) {
      assertEquals(OptionalInt.of(1), other.number());
    }
    List<Quarantine> rests = client.getSemaphore("ids").quarantines();
    assertEquals(List.of(0), rests.stream().map(Quarantine::number).toList());
    long left = Duration.between(Instant.now(), rests.get(0).until().orElseThrow()).toSeconds();
    assertTrue(left > 3500 && left < 3700, () -> left + " s");
  }

  @Test
  void holdersAreAskedWhenASemaphoreShrinks() throws Exception {
    client.createSemaphore("shrinks", 2);
    Permits older = client.acquirePermits("shrinks", ONE);
    Permits newer = client.acquirePermits("shrinks", ONE);
    // A holder is asked, and does not count, as long as it stands in the queue still.
    assertTrue(client.resizeSemaphore("shrinks", 1, "less", null) <= 1);
    Sidecar.until("it is asked", () -> newer.revocation().isPresent());
    assertEquals("less", newer.revocation().orElseThrow().reason());
    assertTrue(older.revocation().isEmpty());
    newer.close();
    older.close();
    try (Watch<SemaphoreView> watch = client.watchSemaphore("shrinks")) {
      assertEquals(1, watch.next().limit());
    }
  }
}
