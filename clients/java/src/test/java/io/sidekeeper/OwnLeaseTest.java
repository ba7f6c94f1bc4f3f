package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.EnsembleUnreachableException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.Ended;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.Resume;
import io.sidekeeper.lock.v1.AcquireRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Locks that are given no lease, over a Unix socket: each has one of its own. */
@Timeout(60)
class OwnLeaseTest {
  private static final LockOptions ALONE = new LockOptions();

  private @TempDir Path folder;
  private Scripted sidecar;
  private Client client;

  @BeforeEach
  void open() throws Exception {
    sidecar = new Scripted(folder.resolve("s.sock"));
    client = new Client(sidecar.address());
  }

  @AfterEach
  void close() {
    client.close();
    sidecar.close();
  }

  private static <T> T got(CompletableFuture<T> future) throws Exception {
    return future.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  private static SidekeeperException failure(CompletableFuture<?> future) {
    Sidecar.until("it fails", future::isDone);
    return assertInstanceOf(SidekeeperException.class, Stage.failureOf(future));
  }

  private Lock hold() throws Exception {
    CompletableFuture<Lock> lock = client.acquireAsync("orders", ALONE);
    sidecar.grant(sidecar.started());
    return got(lock);
  }

  private void release(Lock lock) throws Exception {
    CompletableFuture<Void> released = lock.releaseAsync();
    sidecar.end(Ended.newBuilder().setRequestId(sidecar.stopped()));
    got(released);
  }

  private String nextCall() throws InterruptedException {
    return String.valueOf(sidecar.calls.poll(Sidecar.PATIENT, TimeUnit.SECONDS));
  }

  @Test
  void itsLeaseIsClosedByItsReleaseWithoutACall() throws Exception {
    Lock lock = hold();
    assertTrue(lock.isValid());
    release(lock);
    assertTrue(lock.error().isEmpty());
    assertEquals("no more", nextCall());
    lock.release();
    assertEquals(0, sidecar.calls.size() + sidecar.sent.size());
  }

  /** Grants the lock, and dies before it answers to the release. */
  private void die() {
    try {
      sidecar.grant(sidecar.started());
      sidecar.stopped();
      sidecar.unreleased = Status.UNAVAILABLE.withDescription("gone");
      sidecar.fail(sidecar.unreleased);
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private static void assertUnconfirmed(ReleaseUnconfirmedException told) {
    String before =
        "lock orders: the work has ended, but its release is not confirmed: UNAVAILABLE: the sidecar"
            + " is not reachable (unix://";
    assertTrue(told.getMessage().startsWith(before), told.getMessage());
    assertTrue(told.getMessage().contains(": gone): see that "), told.getMessage());
    assertEquals(
        "ABORTED the result false", told.code() + " " + told.result() + " " + told.isTransient());
  }

  @Test
  void workWhoseReleaseIsNotConfirmedIsNotToBeRepeated() {
    CompletableFuture.runAsync(this::die);
    assertUnconfirmed(
        assertThrows(
            ReleaseUnconfirmedException.class,
            () -> client.withLock("orders", ALONE, lock -> "the result")));
  }

  @Test
  void norIsThatOfAStage() {
    CompletableFuture<String> result =
        client.withLockAsync(
            "orders", ALONE, lock -> CompletableFuture.completedFuture("the result"));
    die();
    assertUnconfirmed(assertInstanceOf(ReleaseUnconfirmedException.class, failure(result)));
  }

  @Test
  void workThatFailedFailsWithItsOwn() {
    CompletableFuture.runAsync(this::die);
    assertThrows(
        IllegalStateException.class,
        () ->
            client.withLock(
                "orders",
                ALONE,
                lock -> {
                  throw new IllegalStateException();
                }));
  }

  @Test
  void itOutlivesItsStream() throws Exception {
    sidecar.resumable = true;
    Lock lock = hold();
    sidecar.fail(Status.UNAVAILABLE);
    Resume resume = sidecar.resume();
    assertTrue(lock.isSuspended() && lock.isValid());
    assertEquals(lock.fencingToken(), resume.getClaims(0).getToken());
    sidecar.opened();
    Sidecar.until("it is resumed", () -> !lock.isSuspended());
    release(lock);
    assertEquals("no more", nextCall());
  }

  @Test
  void itsWaitIsForBothTheLeaseAndTheLock() throws Exception {
    sidecar.openingTakes = 50;
    Duration minute = Duration.ofMinutes(1);
    client.acquireAsync("orders", ALONE.waitTimeout(minute));
    AcquireRequest asked = sidecar.next().getStart().getAcquire();
    Duration left = Wire.duration(asked.getWaitTimeout());
    assertTrue(left.compareTo(minute.minusMillis(50)) <= 0 && left.toSeconds() > 0, "" + left);
    client.acquireAsync("stock", ALONE.waitTimeout(Duration.ZERO));
    MultiplexRequest tried = sidecar.next();
    assertEquals("stock", tried.getStart().getAcquire().getName());
    assertTrue(tried.getStart().getAcquire().hasWaitTimeout());
    assertEquals(Duration.ZERO, Wire.duration(tried.getStart().getAcquire().getWaitTimeout()));
  }

  @Test
  void aLeaseThatIsLostBeforeTheGrantCostsAnAttempt() throws Exception {
    CompletableFuture<Lock> lock = client.acquireAsync("orders", ALONE);
    sidecar.started();
    sidecar.fail(Status.ABORTED, "LEASE_LOST");
    sidecar.grant(sidecar.started());
    assertTrue(got(lock).isValid());
    CompletableFuture<Lock> tried = client.acquireAsync("stock", ALONE.waitTimeout(Duration.ZERO));
    sidecar.started();
    sidecar.fail(Status.ABORTED, "LEASE_LOST");
    SidekeeperException failed = failure(tried);
    assertInstanceOf(EnsembleUnreachableException.class, failed);
    assertEquals(Status.Code.UNAVAILABLE, failed.code());
    assertEquals("nothing is held: LEASE_LOST", failed.getMessage());
  }

  @Test
  void aLeaseThatIsLostIsSaidOfItsOnlyLockFirst() throws Exception {
    CompletableFuture<Lock> tried = client.acquireAsync("orders", ALONE.waitTimeout(Duration.ZERO));
    sidecar.end(
        Ended.newBuilder()
            .setRequestId(sidecar.started())
            .setCode(Status.Code.ABORTED.value())
            .setReason("LEASE_LOST")
            .setMessage("it expired"));
    SidekeeperException failed = failure(tried);
    assertInstanceOf(EnsembleUnreachableException.class, failed);
    assertEquals("nothing is held: it expired", failed.getMessage());
  }

  @Test
  void aLeaseThatCannotBeOpenedIsItsError() {
    sidecar.refusal = "LEASE_LIMIT";
    assertEquals("LEASE_LIMIT", failure(client.acquireAsync("orders", ALONE)).reason());
  }

  @Test
  void itIsLostWithItsLease() throws Exception {
    Lock lock = hold();
    sidecar.fail(Status.ABORTED, "LEASE_LOST");
    Sidecar.until("it is lost", () -> lock.error().isPresent());
    assertEquals("LEASE_LOST", lock.error().orElseThrow().why().reason());
    assertThrows(LockLostException.class, lock::release);
  }

  @Test
  void itsLeaseEndsWhenItIsReleasedAfterItWasLost() throws Exception {
    Lock lock = hold();
    Ended.Builder broken = Ended.newBuilder().setReason("LOCK_BROKEN");
    sidecar.end(broken.setRequestId(lock.fencingToken()).setCode(Status.Code.ABORTED.value()));
    Sidecar.until("it is lost", () -> lock.error().isPresent());
    assertThrows(LockLostException.class, lock::release);
    Sidecar.until("it is cancelled", () -> sidecar.calls.contains("cancelled"));
  }
}
