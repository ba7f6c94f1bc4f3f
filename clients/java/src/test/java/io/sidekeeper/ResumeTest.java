package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.Claim;
import io.sidekeeper.lease.v1.Ended;
import io.sidekeeper.lease.v1.Resume;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Leases that outlive their stream. */
@Timeout(60)
class ResumeTest {
  private static final Status BROKEN = Status.UNAVAILABLE.withDescription("the connection is gone");
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final LockListener listener =
      new LockListener() {
        @Override
        public void suspended(Duration remaining) {
          told.add(remaining.compareTo(Duration.ZERO) > 0 ? "suspended" : "nothing left");
        }

        @Override
        public void resumed() {
          told.add("resumed");
        }
      };
  private @TempDir Path folder;
  private Scripted sidecar;
  private Client client;
  private Lease lease;

  @BeforeEach
  void open() throws Exception {
    begin(new Scripted(folder.resolve("s.sock")));
  }

  private void begin(Scripted played) {
    sidecar = played;
    sidecar.resumable = true;
    client = new Client(sidecar.address());
  }

  @AfterEach
  void close() {
    client.close();
    sidecar.close();
  }

  private CompletableFuture<Lock> begin(String name) {
    return client.acquireAsync(name, new LockOptions().lease(lease).listener(listener));
  }

  private Lock hold() throws Exception {
    lease = client.openLease(new LeaseOptions());
    CompletableFuture<Lock> lock = begin("orders");
    sidecar.grant(sidecar.started());
    return got(lock);
  }

  private static <T> T got(CompletableFuture<T> future) throws Exception {
    return future.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  private static SidekeeperException loss(Lock lock) {
    Sidecar.until("it is lost", () -> lock.error().isPresent());
    assertFalse(lock.isValid());
    return lock.error().orElseThrow().why();
  }

  @Test
  void whatStandsOnALeaseOutlivesItsStream() throws Exception {
    Lock lock = hold();
    CompletableFuture<Lock> waiting = begin("stock");
    long awaited = sidecar.started();
    for (int round = 0; round < 2; round++) {
      told.clear();
      sidecar.fail(BROKEN);
      Resume resume = sidecar.resume();
      Sidecar.until("it is told", () -> told.equals(List.of("suspended")));
      assertTrue(lease.isSuspended() && lock.isSuspended() && lock.isValid());
      assertEquals("lease", resume.getLeaseId());
      assertEquals(2, resume.getClaimsCount());
      for (Claim claim : resume.getClaimsList()) {
        boolean held = claim.getStart().getAcquire().getName().equals("orders");
        assertEquals(held ? lock.holdId() : "", claim.getHoldId());
        assertEquals(held ? lock.fencingToken() : 0, claim.getToken());
        assertEquals(!held, claim.getStart().getRequestId() == awaited);
      }
      sidecar.opened();
      sidecar.grant(lock.fencingToken()); // again
      Sidecar.until("it is told", () -> told.equals(List.of("suspended", "resumed")));
      assertFalse(lease.isSuspended() || lock.isSuspended() || waiting.isDone());
    }
    sidecar.grant(awaited);
    got(waiting);
    CompletableFuture<Void> released = lock.releaseAsync();
    sidecar.end(Ended.newBuilder().setRequestId(sidecar.stopped()));
    got(released);
    assertTrue(lease.isValid());
  }

  @Test
  void aLeaseThatTheSidecarDoesNotKnowAnyMoreIsLostWithItsStream() throws Exception {
    Lock lock = hold();
    sidecar.fail(BROKEN);
    sidecar.resume();
    sidecar.fail(Status.NOT_FOUND, "LEASE_NOT_FOUND");
    SidekeeperException why = loss(lock);
    assertEquals(Status.Code.UNAVAILABLE, why.code());
    assertTrue(why.getMessage().contains(": the connection is gone): see that "), why.getMessage());
  }

  @Test
  void aLeaseThatHasExpiredMeanwhileIsLost() throws Exception {
    Lock lock = hold();
    sidecar.fail(BROKEN);
    sidecar.resume();
    sidecar.fail(Status.UNAVAILABLE, "ENSEMBLE_UNREACHABLE");
    sidecar.resume();
    assertTrue(lock.isValid());
    sidecar.fail(Status.ABORTED, "LEASE_LOST");
    assertEquals("LEASE_LOST", loss(lock).reason());
  }

  @Test
  void aLeaseThatDoesNotOutliveItsSidecarIsLostWithItsStream() throws Exception {
    sidecar.resumable = false;
    Lock lock = hold();
    sidecar.fail(BROKEN);
    assertEquals(Status.Code.UNAVAILABLE, loss(lock).code());
  }

  @Test
  void aLeaseThatIsReachedOverTcpIsLostWithItsStreamWhateverTheSidecarSays() throws Exception {
    close();
    begin(new Scripted(false));
    Lock lock = hold();
    sidecar.fail(BROKEN);
    assertEquals(Status.Code.UNAVAILABLE, loss(lock).code());
    assertFalse(lease.isValid());
  }

  @Test
  void aLeaseIsLostWhenItsValidityRunsOutBeforeItIsResumed() throws Exception {
    sidecar.validity = Wire.duration(Duration.ofSeconds(2));
    Lock lock = hold();
    sidecar.validity = null;
    long began = System.nanoTime();
    sidecar.fail(BROKEN);
    sidecar.resume(); // and is not answered
    assertTrue(lock.isValid());
    assertEquals("LEASE_LOST", loss(lock).reason());
    assertTrue(System.nanoTime() - began < 2_500_000_000L);
    assertFalse(lease.isValid());
    Sidecar.until("the attempt ends", () -> sidecar.calls.contains("cancelled"));
  }

  @Test
  void aLockThatIsReleasedMeanwhileIsGoneWhenReleaseReturns() throws Exception {
    Lock lock = hold();
    sidecar.fail(BROKEN);
    sidecar.resume();
    sidecar.fail(BROKEN);
    CompletableFuture<Void> released = lock.releaseAsync();
    assertFalse(lock.isValid());
    for (long stopped = -1; stopped != lock.fencingToken(); ) {
      var message = sidecar.next(); // an attempt may have begun before the release
      stopped = message.getStop().getRequestId();
    }
    sidecar.opened();
    assertFalse(released.isDone());
    sidecar.end(Ended.newBuilder().setRequestId(lock.fencingToken()));
    got(released);
    assertTrue(lease.isValid());
  }

  @Test
  void aLockThatWasReleasedBeforeItsStreamBrokeIsReleasedThoughItsPlaceIsGone() throws Exception {
    Lock lock = hold();
    CompletableFuture<Void> released = lock.releaseAsync();
    assertEquals(lock.fencingToken(), sidecar.stopped());
    sidecar.fail(BROKEN);
    sidecar.resume();
    assertEquals(lock.fencingToken(), sidecar.stopped());
    sidecar.opened();
    sidecar.end(broken(lock));
    got(released);
    assertTrue(lock.error().isEmpty() && lease.isValid());
  }

  @Test
  void aLockIsLostThatIsReleasedMeanwhileAndBrokenBefore() throws Exception {
    Lock lock = hold();
    sidecar.fail(BROKEN);
    sidecar.resume();
    CompletableFuture<Void> released = lock.releaseAsync();
    assertEquals(lock.fencingToken(), sidecar.stopped());
    sidecar.opened();
    sidecar.end(broken(lock));
    Sidecar.until("it fails", released::isDone);
    assertInstanceOf(LockLostException.class, Stage.failureOf(released));
  }

  private static Ended.Builder broken(Lock lock) {
    Ended.Builder ended = Ended.newBuilder().setRequestId(lock.fencingToken());
    return ended.setCode(Status.Code.ABORTED.value()).setReason("LOCK_BROKEN");
  }
}
