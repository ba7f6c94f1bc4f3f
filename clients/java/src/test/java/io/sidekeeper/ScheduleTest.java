package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.ScheduleNotFoundException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Work at the ticks of a schedule. */
@Timeout(60)
class ScheduleTest {
  private static final WorkOptions OPTIONS = new WorkOptions();
  private static final WorkOptions ONCE = OPTIONS.waitTimeout(Duration.ZERO);

  private Sidecar sidecar;
  private Client client;

  /** Has a schedule of which a run waits. */
  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
    sidecar.schedules.put("reports");
    sidecar.schedules.run("reports", "now");
  }

  @AfterEach
  void disconnect() {
    client.close();
    sidecar.close();
  }

  private Tick work() throws InterruptedException {
    return client.work("reports", OPTIONS);
  }

  /** A failure of which nothing can be told. */
  private static final class Mute extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String toString() {
      throw new IllegalStateException("nothing to tell");
    }
  }

  /** Has it lost without a look at the interrupt, as with work that computes. */
  private void loses(Held held) {
    new Thread(() -> sidecar.expire("reports")).start();
    while (held.error().isEmpty()) {
      Thread.onSpinWait();
    }
  }

  private void assertBeginsAgain() throws InterruptedException {
    try (Client other = new Client(sidecar.address);
        Tick tick = other.work("reports", OPTIONS.waitTimeout(Duration.ofSeconds(30)))) {
      assertEquals("now 2", tick.runId() + " " + tick.number());
    }
  }

  @Test
  void aTickIsFinishedByItsCaller() throws Exception {
    Tick tick = client.work("reports", OPTIONS.owner("me"));
    assertEquals("now 1", tick.runId() + " " + tick.number());
    assertTrue(Duration.between(tick.at(), Instant.now()).abs().toMinutes() < 1);
    assertEquals(new Ticket("reports", tick.fencingToken()), tick.ticket());
    assertEquals(32, tick.holdId().length());
    assertTrue(tick.isValid() && tick.revocation().isEmpty());
    try (GuardScope guarded = tick.guard()) {
      assertFalse(GuardScope.tickets().isEmpty(), guarded::toString);
      client.config().put("made", "x");
    }
    try (Client other = new Client(sidecar.address)) {
      assertThrows(LockHeldException.class, () -> other.work("reports", ONCE));
    }
    tick.finish(Outcome.SUCCEEDED, "three of them");
    assertFalse(tick.isValid());
    assertThrows(AlreadyDoneException.class, () -> tick.finish(Outcome.FAILED, ""));
    assertEquals(List.of("now succeeded 1: three of them"), sidecar.schedules.history("reports"));
    assertThrows(WaitTimeoutException.class, () -> client.work("reports", ONCE));
    assertThrows(ScheduleNotFoundException.class, () -> client.work("none", OPTIONS));
  }

  @Test
  void aBodyThatReturnsHasSucceeded() throws Exception {
    client.work(
        "reports",
        OPTIONS,
        tick -> {
          assertEquals(List.of(tick.ticket()), GuardScope.tickets());
          client.config().put("made", "x");
        });
    assertEquals(List.of("now succeeded 1"), sidecar.schedules.history("reports"));
  }

  @Test
  void aBodyThatThrowsHasFailedWhateverItThrows() {
    TickBody<IOException> fails =
        tick -> {
          throw new IOException("no\tdisk " + "é".repeat(200));
        };
    assertThrows(IOException.class, () -> client.work("reports", OPTIONS, fails));
    sidecar.schedules.run("reports", "mute");
    TickBody<RuntimeException> mute =
        tick -> {
          throw new Mute();
        };
    assertThrows(Mute.class, () -> client.work("reports", OPTIONS, mute));
    sidecar.schedules.run("reports", "interrupted");
    TickBody<RuntimeException> interrupted =
        tick -> {
          Thread.currentThread().interrupt();
          TimeUnit.SECONDS.sleep(Sidecar.PATIENT);
        };
    assertThrows(InterruptedException.class, () -> client.work("reports", OPTIONS, interrupted));
    assertEquals(
        List.of(
            "interrupted failed 1: java.lang.InterruptedException: sleep interrupted",
            "mute failed 1: it has failed",
            "now failed 1: java.io.IOException: no disk " + "é".repeat(113)),
        sidecar.schedules.history("reports"));
  }

  @Test
  void aBodyWhoseLockIsLostIsInterruptedAndItsTickBeginsAgain() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    TickBody<RuntimeException> waits =
        tick -> {
          new Thread(() -> sidecar.expire("reports")).start();
          never.await();
        };
    assertThrows(LockLostException.class, () -> client.work("reports", OPTIONS, waits));
    assertFalse(Thread.currentThread().isInterrupted());
    assertBeginsAgain();
  }

  @Test
  void aBodyThatThrowsAfterTheLossHasNotFailed() throws Exception {
    TickBody<IOException> fails =
        tick -> {
          loses(tick);
          throw new IOException("mine");
        };
    IOException failed =
        assertThrows(IOException.class, () -> client.work("reports", OPTIONS, fails));
    assertInstanceOf(LockLostException.class, failed.getSuppressed()[0]);
    assertBeginsAgain();
  }

  @Test
  void aBodyThatReturnsHasSucceededThoughItsLockWasLost() throws Exception {
    client.work("reports", OPTIONS, this::loses);
    assertFalse(Thread.currentThread().isInterrupted());
    assertEquals(List.of("now succeeded 1"), sidecar.schedules.history("reports"));
  }

  @Test
  void aBodyThatHasEndedItsTickItselfKeepsThatOutcome() throws Exception {
    TickBody<IOException> releases =
        tick -> {
          tick.release();
          throw new IOException("mine");
        };
    assertThrows(IOException.class, () -> client.work("reports", OPTIONS, releases));
    TickBody<IOException> finishes =
        tick -> {
          assertEquals(2, tick.number());
          tick.finish(Outcome.SUCCEEDED, "made");
          throw new IOException("mine");
        };
    IOException failed =
        assertThrows(IOException.class, () -> client.work("reports", OPTIONS, finishes));
    assertEquals(0, failed.getSuppressed().length);
    assertEquals("now succeeded 2: made", sidecar.schedules.history("reports").get(0));
  }

  @Test
  void aTickThatIsClosedWithoutAnOutcomeIsLost() throws Exception {
    try (Tick tick = work()) {
      assertTrue(tick.isValid());
    }
    assertBeginsAgain();
  }

  @Test
  void aLostTickIsSupersededByItsNextAttempt() throws Exception {
    Tick tick = work();
    sidecar.expire("reports");
    tick.ended().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertBeginsAgain();
    assertThrows(SupersededException.class, () -> tick.finish(Outcome.SUCCEEDED, ""));
  }

  @Test
  void aTickThatIsWaitedForComesWhenItIsDue() throws Exception {
    Tick first = work();
    CountDownLatch waits = new CountDownLatch(1);
    LockListener listener =
        new LockListener() {
          @Override
          public void queued(Queued queued) {
            waits.countDown();
          }
        };
    try (Client other = new Client(sidecar.address)) {
      CompletableFuture<Tick> second = other.workAsync("reports", OPTIONS.listener(listener));
      assertTrue(waits.await(Sidecar.PATIENT, TimeUnit.SECONDS));
      CompletableFuture<Tick> third = client.workAsync("reports", OPTIONS);
      assertTrue(third.cancel(true));
      first.finish(Outcome.SUCCEEDED, "");
      sidecar.schedules.run("reports", "next");
      Tick next = second.get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertEquals("next 1", next.runId() + " " + next.number());
      next.finishAsync(Outcome.SUCCEEDED, "").get(Sidecar.PATIENT, TimeUnit.SECONDS);
    }
  }

  @Test
  void whatWorkIsGivenIsCheckedBeforeAnythingIsSent() throws Exception {
    assertThrows(NullPointerException.class, () -> client.work(null, OPTIONS));
    assertThrows(NullPointerException.class, () -> client.work("reports", OPTIONS, null));
    assertThrows(IllegalArgumentException.class, () -> OPTIONS.waitTimeout(Duration.ofDays(-1)));
    try (Client other = new Client(sidecar.address);
        Lease lease = other.openLease(new LeaseOptions())) {
      assertThrows(
          IllegalArgumentException.class, () -> client.work("reports", OPTIONS.lease(lease)));
    }
  }
}
