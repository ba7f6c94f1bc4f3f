package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.FieldError;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.hold.v1.Resumed;
import io.sidekeeper.hold.v1.RevocationRequested;
import io.sidekeeper.hold.v1.Suspended;
import io.sidekeeper.lease.v1.Ended;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.lock.v1.AcquireResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a lease's stream carries. */
@Timeout(60)
class MultiplexTest {
  private static final LockOptions OPTIONS = new LockOptions();
  private Scripted sidecar;
  private Client client;
  private Lease lease;

  @BeforeEach
  void open() throws Exception {
    sidecar = new Scripted(false);
    client = new Client(sidecar.address());
    lease = client.openLease(new LeaseOptions());
  }

  @AfterEach
  void close() {
    Clock.count(null);
    client.close();
    sidecar.close();
  }

  private CompletableFuture<Lock> begin(LockOptions options) {
    return client.acquireAsync("orders", options.lease(lease));
  }

  private static <T> T got(CompletableFuture<T> future) throws Exception {
    return future.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  private static Throwable failure(CompletableFuture<?> future) {
    Sidecar.until("it fails", future::isDone);
    return Stage.failureOf(future);
  }

  private Lock hold(LockOptions options) throws Exception {
    CompletableFuture<Lock> lock = begin(options);
    sidecar.grant(sidecar.started());
    return got(lock);
  }

  private static Ended.Builder ended(long request, Status.Code code, String reason) {
    return Ended.newBuilder()
        .setRequestId(request)
        .setCode(code.value())
        .setReason(reason)
        .setMessage(reason + ": because");
  }

  private void confirm(long request) {
    sidecar.end(Ended.newBuilder().setRequestId(request));
  }

  @Test
  void aLockOfALeaseTakesTwoMessagesAndNoCall() throws Exception {
    long last = 0;
    for (int i = 0; i < 3; i++) {
      CompletableFuture<Lock> acquired = begin(OPTIONS.owner("me"));
      Start start = sidecar.next().getStart();
      assertTrue(start.getRequestId() > last);
      last = start.getRequestId();
      assertEquals("me", start.getAcquire().getOwner());
      assertEquals("", start.getAcquire().getLeaseId());
      sidecar.grant(last);
      Lock lock = got(acquired);
      assertEquals("hold-" + last, lock.holdId());
      assertTrue(lock.isValid());
      assertTrue(lock.validFor().compareTo(lease.validFor()) >= 0);
      CompletableFuture<Void> released = lock.releaseAsync();
      assertEquals(last, sidecar.stopped());
      assertFalse(lock.isValid());
      confirm(last);
      got(released);
      lock.release();
      assertTrue(lock.error().isEmpty());
    }
    assertEquals(1, sidecar.checks);
    assertEquals(List.of(), List.copyOf(sidecar.calls));
    assertEquals(List.of(), List.copyOf(sidecar.sent));
  }

  /** Has the clients count on a clock that goes on for an hour each time that this is called. */
  private static Runnable suspending() {
    AtomicLong slept = new AtomicLong();
    Clock.count(
        () -> {
          Clock.Instant real = Clock.ofSystem().read();
          return new Clock.Instant(real.shown() + slept.get(), real.behind());
        });
    return () -> slept.addAndGet(Duration.ofHours(1).toNanos());
  }

  @Test
  void aLeaseOnWhichNothingStandsIsNotLostWhenItsValidityRunsOut() throws Exception {
    Runnable suspend = suspending();
    var validity = sidecar.validity;
    for (int round = 0; round < 2; round++) {
      sidecar.validity = null;
      suspend.run();
      CompletableFuture<Lock> waiting = begin(OPTIONS);
      Sidecar.pause(0.7); // in which the lease is looked at, and asked about
      assertFalse(lease.isValid());
      assertTrue(lease.error().isEmpty());
      assertThrows(LostException.class, lease::check);
      assertTrue(sidecar.sent.isEmpty() && !waiting.isDone());
      sidecar.validity = validity;
      sidecar.grant(sidecar.started());
      Lock lock = got(waiting);
      assertTrue(lock.isValid() && lease.isValid());
      lease.check();
      CompletableFuture<Void> released = lock.releaseAsync();
      confirm(sidecar.stopped());
      got(released);
    }
    Lock lock = hold(OPTIONS);
    sidecar.validity = null;
    suspend.run();
    got(lock.ended().toCompletableFuture());
    for (Held held : List.of(lock, lease)) {
      assertEquals("LEASE_LOST", held.error().orElseThrow().why().reason());
    }
  }

  @Test
  void whatIsStartedOnALeaseThatIsNotValidFailsWhenNobodySaysThatItIs() {
    Runnable suspend = suspending();
    sidecar.validity = null;
    suspend.run();
    Throwable refused = failure(begin(OPTIONS.waitTimeout(Duration.ZERO)));
    assertEquals("the sidecar does not answer", refused.getMessage());
    assertTrue(lease.error().isEmpty());
  }

  @Test
  void aLeaseOnWhichAReleaseIsUnderWayIsLostWhenItsValidityRunsOut() throws Exception {
    Runnable suspend = suspending();
    Lock lock = hold(OPTIONS);
    CompletableFuture<Void> released = lock.releaseAsync();
    sidecar.stopped();
    sidecar.validity = null;
    suspend.run();
    assertInstanceOf(LostException.class, failure(released));
    assertEquals("LEASE_LOST", lease.error().orElseThrow().why().reason());
  }

  @Test
  void aReleaseReturnsWhenThePlaceIsGone() throws Exception {
    Lock lock = hold(OPTIONS);
    CompletableFuture<Void> released = lock.releaseAsync();
    long request = sidecar.stopped();
    hold(OPTIONS); // which takes its time
    assertFalse(released.isDone());
    confirm(request);
    got(released);
  }

  @Test
  void anEndThatCrossesTheReleaseIsTold() throws Exception {
    Lock lock = hold(OPTIONS);
    CompletableFuture<Void> released = lock.releaseAsync();
    sidecar.end(ended(sidecar.stopped(), Status.Code.ABORTED, "LOCK_BROKEN"));
    LockLostException lost = assertInstanceOf(LockLostException.class, failure(released));
    assertEquals("LOCK_BROKEN", lost.why().reason());
    assertTrue(lock.error().isEmpty()); // it was over for the caller before
  }

  @Test
  void anEndIsAcknowledgedOnceAlthoughAListenerBlocks() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    LockListener blocking =
        new LockListener() {
          @Override
          public void revocationRequested(Revocation revocation) {
            called.countDown();
            try {
              never.await();
            } catch (InterruptedException interrupted) {
              Thread.currentThread().interrupt();
            }
          }
        };
    CompletableFuture<Lock> acquired = begin(OPTIONS.listener(blocking));
    long request = sidecar.started();
    sidecar.grant(request);
    Lock lock = got(acquired);
    Lock other = hold(OPTIONS);
    RevocationRequested revocation = RevocationRequested.getDefaultInstance();
    sidecar.say(request, AcquireResponse.newBuilder().setRevocationRequested(revocation));
    assertTrue(called.await(Sidecar.PATIENT, TimeUnit.SECONDS));
    sidecar.end(ended(request, Status.Code.ABORTED, "LOCK_REVOKED").putMetadata("by", "me"));
    assertEquals(request, sidecar.stopped());
    assertFalse(lock.isValid());
    SidekeeperException why = lock.error().orElseThrow().why();
    assertEquals("LOCK_REVOKED because", why.reason() + " " + why.getMessage());
    assertEquals(Map.of("by", "me"), why.metadata());
    assertThrows(LockLostException.class, lock::release);
    assertTrue(other.isValid());
    hold(OPTIONS); // with the next message
    never.countDown();
  }

  @Test
  void anErrorIsTheSameAsThatOfACall() throws Exception {
    CompletableFuture<Lock> refused = begin(OPTIONS);
    sidecar.end(
        ended(sidecar.started(), Status.Code.INVALID_ARGUMENT, "INVALID_FIELD")
            .putAllMetadata(Map.of("field", "name", "value", "a//b", "rule", "a name")));
    SidekeeperException invalid = assertInstanceOf(SidekeeperException.class, failure(refused));
    assertEquals(Status.Code.INVALID_ARGUMENT, invalid.code());
    assertEquals(List.of(new FieldError("name", "a name")), invalid.fields());
    assertEquals("a//b", invalid.metadata().get("value"));
    CompletableFuture<Lock> tried = begin(OPTIONS.waitTimeout(Duration.ZERO));
    sidecar.stopped(); // of the one before
    sidecar.end(ended(sidecar.started(), Status.Code.FAILED_PRECONDITION, "LOCK_HELD"));
    assertInstanceOf(LockHeldException.class, failure(tried));
  }

  @Test
  void aSuspensionIsToldToThoseWhoHold() throws Exception {
    List<String> told = new CopyOnWriteArrayList<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void suspended(Duration remaining) {
            told.add("suspended " + remaining.toSeconds());
          }

          @Override
          public void resumed() {
            told.add("resumed");
          }
        };
    Lock lock = hold(OPTIONS.listener(listener));
    CompletableFuture<Lock> waiting = begin(OPTIONS.listener(listener));
    long request = sidecar.started();
    var remaining = Wire.duration(Duration.ofSeconds(7));
    sidecar.say(
        MultiplexResponse.newBuilder()
            .setSuspended(Suspended.newBuilder().setRemaining(remaining)));
    Sidecar.until("it is suspended", () -> lease.isSuspended() && lock.isSuspended());
    sidecar.say(MultiplexResponse.newBuilder().setResumed(Resumed.getDefaultInstance()));
    Sidecar.until("it is resumed", () -> !lease.isSuspended() && !lock.isSuspended());
    sidecar.grant(request);
    got(waiting);
    Sidecar.until("it is told", () -> told.size() == 2);
    assertEquals(List.of("suspended 7", "resumed"), told);
  }

  @Test
  void whoGivesUpDoesNotGetWhatIsGrantedMeanwhile() throws Exception {
    CompletableFuture<Lock> waiting = begin(OPTIONS);
    long request = sidecar.started();
    assertTrue(waiting.cancel(true));
    assertEquals(request, sidecar.stopped());
    sidecar.grant(request);
    confirm(request);
    hold(OPTIONS); // with the next message
  }

  @Test
  void allThatStandsOnALeaseEndsWithItsStreamAndForItsReason() throws Exception {
    Lock lock = hold(OPTIONS);
    CompletableFuture<Lock> waiting = begin(OPTIONS);
    CompletableFuture<Membership> joining =
        client.joinAsync("workers", "a", new JoinOptions().lease(lease));
    sidecar.started();
    sidecar.started();
    sidecar.fail(Status.ABORTED.withDescription("LEASE_LOST: expired"));
    for (CompletableFuture<?> each : List.of(waiting, joining)) {
      SidekeeperException why = assertInstanceOf(SidekeeperException.class, failure(each));
      assertEquals("LEASE_LOST", why.reason());
    }
    assertEquals("LEASE_LOST", lock.error().orElseThrow().why().reason());
    assertEquals("LEASE_LOST", lease.error().orElseThrow().why().reason());
    assertEquals("LEASE_LOST", ((SidekeeperException) failure(begin(OPTIONS))).reason());
    assertEquals(
        "Release " + lock.holdId(), got(nextCall())); // which the stream cannot tell any more
  }

  private CompletableFuture<String> nextCall() {
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return sidecar.calls.poll(Sidecar.PATIENT, TimeUnit.SECONDS);
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
        });
  }

  @Test
  void aReleaseThatLosesItsStreamIsConfirmedByACall() throws Exception {
    Lock lock = hold(OPTIONS);
    CompletableFuture<Void> released = lock.releaseAsync();
    sidecar.stopped();
    sidecar.fail(Status.UNAVAILABLE);
    assertNull(got(released));
    assertEquals("Release " + lock.holdId(), got(nextCall()));
  }

  @Test
  void aSidecarThatIsFrozenKeepsNobodyForLongerThanHeWaits() throws IOException {
    Duration wait = Duration.ofMillis(1);
    try (Scripted frozen = new Scripted(true);
        Client other = new Client(frozen.address())) {
      List<CompletableFuture<?>> calls =
          List.of(
              begin(OPTIONS.waitTimeout(wait)),
              other.acquireAsync("orders", OPTIONS.waitTimeout(wait)),
              other.openLeaseAsync(new LeaseOptions().waitTimeout(wait)),
              other.joinAsync("workers", "a", new JoinOptions().waitTimeout(wait)));
      for (CompletableFuture<?> call : calls) {
        SidekeeperException silent = assertInstanceOf(SidekeeperException.class, failure(call));
        assertEquals(
            "UNAVAILABLE the sidecar does not answer", silent.code() + " " + silent.getMessage());
      }
    }
  }
}
