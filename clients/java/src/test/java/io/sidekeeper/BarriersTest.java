package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Barriers and double barriers. */
@Timeout(60)
class BarriersTest {
  private static final BarrierOptions OPTIONS = new BarrierOptions();
  private static final Runnable NOTHING = () -> {};

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

  private static <T> T got(CompletableFuture<T> future) throws Exception {
    return future.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  private static Throwable failure(CompletableFuture<?> future) {
    Sidecar.until("it fails", future::isDone);
    return Stage.failureOf(future);
  }

  /** Two callers inside a double barrier. */
  private record Both(BarrierEntry one, BarrierEntry two) {}

  private Both enterBoth(BarrierOptions first, BarrierOptions second) throws Exception {
    CompletableFuture<BarrierEntry> one = client.enterBarrierAsync("start", 2, first);
    BarrierEntry two = client.enterBarrier("start", 2, second);
    return new Both(got(one), two);
  }

  @Test
  void aBarrierHoldsCallersBackUntilItIsRemoved() throws Exception {
    client.awaitBarrier("gate"); // which is not set
    client.setBarrier("gate");
    client.setBarrier("gate");
    CompletableFuture<Void> told = new CompletableFuture<>();
    CompletableFuture<Void> waiting =
        client.awaitBarrierAsync("gate", null, () -> told.complete(null));
    got(told);
    assertThrows(
        WaitTimeoutException.class,
        () -> client.awaitBarrier("gate", Duration.ofMillis(20), NOTHING));
    assertFalse(waiting.isDone());
    client.removeBarrier("gate");
    got(waiting);
    client.removeBarrier("gate");
    client.awaitBarrier("gate", Duration.ofSeconds(Sidecar.PATIENT), NOTHING);
    refused("INVALID_FIELD", () -> client.awaitBarrier("/"));
    assertThrows(
        IllegalArgumentException.class, () -> client.awaitBarrier("gate", Duration.ZERO, NOTHING));
  }

  @Test
  void whoWaitsAtABarrierWaitsAnewWhenTheSidecarWasAway() throws Exception {
    client.setBarrier("gate");
    CompletableFuture<Void> told = new CompletableFuture<>();
    CompletableFuture<Void> waiting =
        client.awaitBarrierAsync("gate", null, () -> told.complete(null));
    CompletableFuture<Void> cancelled = client.awaitBarrierAsync("gate", null, NOTHING);
    got(told);
    sidecar.kill();
    assertThrows(
        WaitTimeoutException.class,
        () -> client.awaitBarrier("gate", Duration.ofMillis(200), NOTHING));
    assertFalse(waiting.isDone());
    cancelled.cancel(true);
    sidecar.start(); // with an ensemble that knows of no barrier
    got(waiting);
  }

  @Test
  void aClosedClientWaitsAtNoBarrier() throws Exception {
    client.setBarrier("gate");
    CompletableFuture<Void> told = new CompletableFuture<>();
    CompletableFuture<Void> waiting =
        client.awaitBarrierAsync("gate", null, () -> told.complete(null));
    got(told);
    sidecar.kill(); // so that it rests before it waits anew
    client.close();
    assertEquals("the client is closed", failure(waiting).getMessage());
    refused("", () -> client.awaitBarrier("gate"));
  }

  @Test
  void callersEnterAndLeaveADoubleBarrierTogether() throws Exception {
    List<Integer> present = new CopyOnWriteArrayList<>();
    BarrierListener listener =
        new BarrierListener() {
          @Override
          public void waiting(int number) {
            present.add(number);
          }
        };
    CompletableFuture<BarrierEntry> first =
        client.enterBarrierAsync("start", 2, OPTIONS.listener(listener).owner("first"));
    Sidecar.until("it waits", () -> !present.isEmpty());
    assertEquals(1, present.get(0));
    assertFalse(first.isDone());
    BarrierEntry two = client.enterBarrier("start", 2, OPTIONS);
    BarrierEntry one = got(first);
    assertTrue(one.isValid() && two.isValid());
    assertEquals("start", one.barrier());
    assertEquals(one.round(), two.round());
    refused("NAME_IS_DIRECTORY", () -> client.setBarrier("start"));
    CompletableFuture<Void> left = one.leaveAsync();
    assertFalse(one.isValid());
    assertThrows(TimeoutException.class, () -> left.get(200, TimeUnit.MILLISECONDS));
    two.leave();
    got(left);
    one.leave(); // again
    one.close();
    assertTrue(one.error().isEmpty() && two.error().isEmpty());
    Both next = enterBoth(OPTIONS, OPTIONS);
    assertTrue(next.one.round() > one.round());
    next.one.release();
    next.two.leave();
  }

  @Test
  void nobodyWaitsForWhoHasReleasedItsEntry() throws Exception {
    Both both = enterBoth(OPTIONS, OPTIONS);
    CompletableFuture<Void> left = both.one.leaveAsync();
    both.two.releaseAsync().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    got(left);
    both.two.leave(); // which all have
    Both again = enterBoth(OPTIONS, OPTIONS);
    again.one.release();
    CompletableFuture<Void> waits = again.one.leaveAsync(); // for the other
    assertThrows(TimeoutException.class, () -> waits.get(200, TimeUnit.MILLISECONDS));
    again.two.close();
    got(waits);
  }

  @Test
  void whoStopsToWaitForTheOthersHasReleasedItsEntry() throws Exception {
    Both both = enterBoth(OPTIONS, OPTIONS);
    assertTrue(both.one.leaveAsync().cancel(true));
    both.two.leave(); // which nobody holds up
    both.one.close();
    Both again = enterBoth(OPTIONS, OPTIONS);
    Thread.currentThread().interrupt();
    assertThrows(InterruptedException.class, again.one::leave);
    again.two.leave();
    again.one.close();
  }

  @Test
  void whoHasWaitedInVainIsNotCounted() throws Exception {
    Lease lease = client.openLease(new LeaseOptions());
    BarrierOptions leased = OPTIONS.lease(lease);
    refused(
        "WAIT_TIMEOUT",
        () -> client.enterBarrier("start", 2, leased.waitTimeout(Duration.ofMillis(50))));
    refused(
        "INVALID_FIELD", () -> client.enterBarrier("start", 2, OPTIONS.waitTimeout(Duration.ZERO)));
    refused("INVALID_FIELD", () -> client.enterBarrier("start", 0, OPTIONS));
    assertTrue(client.enterBarrierAsync("start", 2, leased).cancel(true));
    lease.close(); // after which nothing is left of either
    Both both = enterBoth(OPTIONS, OPTIONS);
    assertTrue(both.one.isValid() && both.two.isValid());
    both.one.close();
    both.two.leave();
  }

  @Test
  void anEntryOnALeaseEndsWithIt() throws Exception {
    Lease lease = client.openLease(new LeaseOptions());
    CompletableFuture<LostException> told = new CompletableFuture<>();
    BarrierListener listener =
        new BarrierListener() {
          @Override
          public void lost(LostException lost) {
            told.complete(lost);
          }
        };
    Both both = enterBoth(OPTIONS, OPTIONS.lease(lease).listener(listener));
    refused("ALREADY_CONTENDING", () -> client.enterBarrier("start", 2, OPTIONS.lease(lease)));
    CompletableFuture<Void> left = both.one.leaveAsync();
    lease.close();
    assertEquals("LEASE_CLOSED", got(told).why().reason());
    got(left);
    assertThrows(LostException.class, both.two::leave);
    assertThrows(LostException.class, both.two::close);
  }

  @Test
  void nobodyWaitsForWhoHasLostItsEntry() throws Exception {
    Both both = enterBoth(OPTIONS, OPTIONS);
    CompletableFuture<Void> left = both.one.leaveAsync();
    sidecar.expireAll();
    Sidecar.until("it is lost", () -> both.two.error().isPresent());
    assertEquals("LEASE_LOST", both.two.error().orElseThrow().why().reason());
    assertThrows(LostException.class, both.two::leave);
    Sidecar.until("the other is told", left::isDone);
    Throwable failure = Stage.failureOf(left); // it may have left before
    if (failure != null) {
      assertEquals("LEASE_LOST", assertInstanceOf(LostException.class, failure).why().reason());
    }
  }

  @Test
  void leaveEndsAtASidecarThatDoesNotKnowTheEntryAnyMore() throws Exception {
    Both both = enterBoth(OPTIONS, OPTIONS);
    CompletableFuture<Void> left = both.one.leaveAsync();
    sidecar.kill();
    sidecar.start();
    // Its stream has ended, or the sidecar that has come says so, whichever is first.
    Throwable told = failure(left);
    assertTrue(
        told instanceof LostException
            || told instanceof SidekeeperException why
                && why.reason().equals("RELEASE_UNCONFIRMED"));
    assertThrows(LostException.class, both.two::leave);
  }
}
