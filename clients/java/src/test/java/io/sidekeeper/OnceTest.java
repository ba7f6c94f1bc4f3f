package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.NotRepeatedException;
import io.sidekeeper.errors.SupersededException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/** Work that is done once. */
@Timeout(60)
@SuppressWarnings("try") // a scope has no other use than its end
class OnceTest {
  private static final OnceOptions OPTIONS = new OnceOptions();
  private static final OnceOptions SKIPS = OPTIONS.onLoss(Policy.SKIP);

  private Sidecar sidecar;
  private Client client;

  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
  }

  @AfterEach
  void disconnect() {
    Clock.count(null);
    client.close();
    sidecar.close();
  }

  private void assertRecorded(String record) {
    assertEquals(record, sidecar.recorded("mail", "7"));
  }

  private Attempt begin() throws InterruptedException {
    return client.begin("mail", "7", OPTIONS);
  }

  /** A failure of which nothing can be told. */
  private static final class Mute extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String toString() {
      throw new IllegalStateException("nothing to tell");
    }
  }

  private void assertDone() {
    assertThrows(AlreadyDoneException.class, this::begin);
  }

  /** Has it lost without a look at the interrupt, as with work that computes. */
  private void loses(Held held) {
    new Thread(() -> sidecar.expire("mail/7")).start();
    while (held.error().isEmpty()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void workIsDoneUntilItHasSucceeded() throws Exception {
    List<Integer> numbers = new ArrayList<>();
    OnceBody<IOException> work =
        attempt -> {
          numbers.add(attempt.number());
          assertEquals(new Ticket("mail/7", attempt.fencingToken()), attempt.ticket());
          client.config().put("sent", "once");
          if (numbers.size() == 1) {
            throw new IOException("no\tdisk " + "é".repeat(200));
          }
        };
    OnceOptions options = OPTIONS.owner("me");
    IOException failed =
        assertThrows(IOException.class, () -> client.once("mail", "7", options, work));
    assertEquals(0, failed.getSuppressed().length);
    String note = "java.io.IOException: no disk " + "é".repeat(113);
    assertEquals(255, note.getBytes(StandardCharsets.UTF_8).length);
    assertRecorded("FAILED 1 " + note);
    assertTrue(client.once("mail", "7", options, work));
    assertFalse(client.once("mail", "7", work));
    assertEquals(List.of(1, 2), numbers);
    assertRecorded("SUCCEEDED 2");
    AlreadyDoneException done = assertThrows(AlreadyDoneException.class, this::begin);
    assertEquals("me", done.metadata().get("owner"));
  }

  @Test
  void workIsGivenUpWhenItsAttemptsAreUsedUp() {
    OnceBody<IOException> fails =
        attempt -> {
          throw new IOException("again");
        };
    OnceOptions two = OPTIONS.attempts(2);
    for (int attempt = 0; attempt < 2; attempt++) {
      assertThrows(IOException.class, () -> client.once("mail", "7", two, fails));
    }
    assertThrows(NotRepeatedException.class, () -> client.once("mail", "7", two, fails));
    OnceOptions more = two.attempts(3).onFailure(Policy.SKIP);
    assertThrows(NotRepeatedException.class, () -> client.once("mail", "7", more, fails));
  }

  @Test
  void workWhoseLockIsBrokenIsInterruptedAndLost() {
    CountDownLatch never = new CountDownLatch(1);
    OnceBody<RuntimeException> work =
        attempt -> {
          new Thread(() -> sidecar.breakFirst("mail/7", TimeUnit.SECONDS.toNanos(Sidecar.PATIENT)))
              .start();
          never.await();
        };
    LockLostException lost =
        assertThrows(LockLostException.class, () -> client.once("mail", "7", SKIPS, work));
    assertEquals("LOCK_BROKEN", lost.why().reason());
    assertInstanceOf(InterruptedException.class, lost.getSuppressed()[0]);
    assertFalse(Thread.currentThread().isInterrupted());
    assertRecorded("LOST 1");
    assertThrows(NotRepeatedException.class, () -> client.once("mail", "7", SKIPS, work));
  }

  @Test
  void workThatFailsAfterTheLossOfItsLockIsLost() {
    IOException failed =
        assertThrows(
            IOException.class,
            () ->
                client.once(
                    "mail",
                    "7",
                    attempt -> {
                      loses(attempt);
                      throw new IOException("mine");
                    }));
    assertInstanceOf(LockLostException.class, failed.getSuppressed()[0]);
    assertRecorded("LOST 1");
  }

  @Test
  void workThatFailsWhenItsValidityHasRunOutUnseenIsLost() {
    AtomicLong slept = new AtomicLong();
    Clock.count(
        () -> {
          Clock.Instant instant = Clock.ofSystem().read();
          return new Clock.Instant(instant.shown() + slept.get(), instant.behind());
        });
    OnceBody<IOException> work =
        attempt -> {
          slept.set(TimeUnit.HOURS.toNanos(1));
          throw new IOException("mine");
        };
    IOException failed =
        assertThrows(IOException.class, () -> client.once("mail", "7", OPTIONS, work));
    assertInstanceOf(LockLostException.class, failed.getSuppressed()[0]);
    Sidecar.until("it is lost", () -> sidecar.recorded("mail", "7").equals("LOST 1"));
  }

  @Test
  void workThatFailsForAnotherLockIsLost() throws Exception {
    Lock other = client.acquire("other");
    assertThrows(
        GuardLostException.class,
        () ->
            client.once(
                "mail",
                "7",
                attempt -> {
                  try (GuardScope guarded = other.guard()) {
                    assertFalse(GuardScope.tickets().isEmpty());
                    sidecar.release(other.holdId());
                    client.config().put("sent", "once");
                  }
                }));
    assertRecorded("LOST 1");
    assertThrows(
        LockLostException.class,
        () ->
            client.once(
                "mail",
                "7",
                attempt -> {
                  Lock lock = client.acquire("third");
                  sidecar.expire("third");
                  Sidecar.until("it is lost", () -> lock.error().isPresent());
                  lock.check();
                }));
    assertRecorded("LOST 2");
  }

  @Test
  void workThatReturnsHasSucceededThoughItsLockWasLost() throws Exception {
    assertTrue(client.once("mail", "7", this::loses));
    assertFalse(Thread.currentThread().isInterrupted());
    assertRecorded("SUCCEEDED 1");
  }

  @Test
  void workThatOthersInterruptHasFailed() {
    assertThrows(
        InterruptedException.class,
        () ->
            client.once(
                "mail",
                "7",
                attempt -> {
                  Thread.currentThread().interrupt();
                  Thread.sleep(1000);
                }));
    assertRecorded("FAILED 1 java.lang.InterruptedException: sleep interrupted");
  }

  @Test
  void workThatEndsInAnErrorHasFailed() {
    assertThrows(
        StackOverflowError.class,
        () ->
            client.once(
                "mail",
                "7",
                attempt -> {
                  throw new StackOverflowError();
                }));
    assertRecorded("FAILED 1 java.lang.StackOverflowError");
  }

  @Test
  void workWhoseFailureCannotBeToldHasFailed() {
    assertThrows(
        Mute.class,
        () ->
            client.once(
                "mail",
                "7",
                attempt -> {
                  throw new Mute();
                }));
    assertRecorded("FAILED 1 it has failed");
  }

  @Test
  @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD) // a loop heeds no interrupt
  void workThatFailsForCausesInACircleHasFailed() {
    IOException failure = new IOException("mine");
    failure.initCause(new IOException("of which it is the cause", failure));
    OnceBody<IOException> work =
        attempt -> {
          throw failure;
        };
    assertSame(
        failure, assertThrows(IOException.class, () -> client.once("mail", "7", OPTIONS, work)));
    assertRecorded("FAILED 1 java.io.IOException: mine");
  }

  @Test
  void anAttemptThatIsClosedWithoutItsOutcomeIsLost() throws Exception {
    Attempt first;
    try (Attempt attempt = begin()) {
      first = attempt;
      assertTrue(attempt.isValid());
      assertRecorded("RUNNING 1");
    }
    assertRecorded("LOST 1");
    first.finish(Outcome.SUCCEEDED, "late");
    first.close();
    assertRecorded("SUCCEEDED 1 late");
    assertDone();
  }

  @Test
  void theFirstOutcomeCounts() throws Exception {
    try (Attempt attempt = begin()) {
      attempt.finish(Outcome.FAILED, "a note");
      assertFalse(attempt.isValid());
      attempt.finishAsync(Outcome.FAILED, "").get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertThrows(AlreadyDoneException.class, () -> attempt.finish(Outcome.SUCCEEDED, ""));
    }
    assertRecorded("FAILED 1 a note");
  }

  @Test
  void anAttemptIsFinishedThoughItsLockWasLostUnlessAnotherHasBegun() throws Exception {
    Attempt first = begin();
    loses(first);
    Attempt second = begin();
    assertEquals(2, second.number());
    assertTrue(second.fencingToken() > first.fencingToken());
    assertThrows(SupersededException.class, () -> first.finish(Outcome.SUCCEEDED, ""));
    first.close();
    loses(second);
    second.finish(Outcome.SUCCEEDED, "late");
    second.finish(Outcome.SUCCEEDED, "");
    assertRecorded("SUCCEEDED 2 late");
  }

  @Test
  void finishIsAskedAgainWhileAnotherCallerHasTheLock() throws Exception {
    OnceOptions tries = OPTIONS.perName(true).waitTimeout(Duration.ZERO);
    Attempt first = client.begin("mail", "7", tries);
    sidecar.expire("mail");
    Sidecar.until("it is lost", () -> first.error().isPresent());
    Lock other = client.acquire("mail");
    assertThrows(LockHeldException.class, () -> client.begin("mail", "8", tries));
    assertThrows(LockHeldException.class, () -> first.finish(Outcome.SUCCEEDED, ""));
    other.release();
    first.finish(Outcome.SUCCEEDED, "");
    assertRecorded("SUCCEEDED 1");
  }

  @Test
  void finishIsAnsweredByASidecarThatWasFrozen() throws Exception {
    Attempt attempt = begin();
    sidecar.send("STOP");
    CompletableFuture<Void> finished = attempt.finishAsync(Outcome.SUCCEEDED, "");
    assertFalse(attempt.isValid());
    assertThrows(Exception.class, () -> finished.get(1, TimeUnit.SECONDS));
    sidecar.send("CONT");
    finished.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertRecorded("SUCCEEDED 1");
  }

  @Test
  void anAttemptStandsOnAGivenLeaseAndIsWaitedFor() throws Exception {
    Lease lease = client.openLease(new LeaseOptions());
    Attempt first = client.begin("mail", "7", OPTIONS.lease(lease));
    CompletableFuture<Queued> told = new CompletableFuture<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void queued(Queued queued) {
            told.complete(queued);
          }
        };
    CompletableFuture<Attempt> second =
        client.beginAsync("mail", "7", OPTIONS.listener(listener).owner("second"));
    assertEquals(1, told.get(Sidecar.PATIENT, TimeUnit.SECONDS).position());
    second.cancel(true);
    Supplier<Integer> waiters =
        () -> {
          try {
            return client.getLock("mail/7").waiters().size();
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
        };
    Sidecar.until("it waits no more", () -> waiters.get() == 0);
    first.finish(Outcome.SUCCEEDED, "");
    assertTrue(lease.isValid());
    assertDone();
    try (Client other = new Client(sidecar.address)) {
      assertThrows(
          IllegalArgumentException.class, () -> other.begin("mail", "7", OPTIONS.lease(lease)));
    }
  }

  @Test
  void anAttemptGuardsWhatIsWrittenForIt() throws Exception {
    Attempt attempt = begin();
    try (GuardScope guarded = attempt.guard()) {
      assertEquals(List.of(attempt.ticket()), GuardScope.tickets());
      client.config().put("sent", "once");
      loses(attempt);
      assertThrows(GuardLostException.class, () -> client.config().put("sent", "twice"));
    }
    assertEquals("once", client.config().getLinearizable("sent").text());
  }
}
