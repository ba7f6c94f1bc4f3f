package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SuspendedException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the scenarios do not tell of bodies that run while a lock is held. */
@Timeout(60)
class BodiesTest {
  private static final LockOptions OPTIONS = new LockOptions();
  private static final LockOptions ONCE = OPTIONS.waitTimeout(Duration.ZERO);

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

  private void assertFree(String lock) throws InterruptedException {
    client.acquire(lock, ONCE).release();
  }

  @Test
  void aBodyIsInterruptedWhenItsLockIsLost() {
    CountDownLatch never = new CountDownLatch(1);
    LockLostException lost =
        assertThrows(
            LockLostException.class,
            () ->
                client.withLock(
                    "orders",
                    OPTIONS,
                    lock -> {
                      new Thread(() -> sidecar.expire("orders")).start();
                      never.await();
                      return null;
                    }));
    assertInstanceOf(InterruptedException.class, lost.getSuppressed()[0]);
    assertFalse(Thread.currentThread().isInterrupted());
  }

  @Test
  void aBodyIsInterruptedWhenItsHoldIsReleasedElsewhere() {
    CountDownLatch never = new CountDownLatch(1);
    LockLostException lost =
        assertThrows(
            LockLostException.class,
            () ->
                client.withLock(
                    "orders",
                    OPTIONS,
                    lock -> {
                      new Thread(() -> sidecar.release(lock.holdId())).start();
                      return never.await(Sidecar.PATIENT, TimeUnit.SECONDS);
                    }));
    assertEquals("lock orders lost: it was released elsewhere", lost.getMessage());
    assertInstanceOf(InterruptedException.class, lost.getSuppressed()[0]);
  }

  @Test
  void aBodyThatEndsAfterItsHoldWasReleasedElsewhereHasLostIt() {
    LockLostException lost =
        assertThrows(
            LockLostException.class,
            () ->
                client.withLock(
                    "orders",
                    OPTIONS,
                    lock -> {
                      new Thread(() -> sidecar.release(lock.holdId())).start();
                      while (lock.isValid()) {
                        Thread.onSpinWait();
                      }
                      return null;
                    }));
    assertEquals("lock orders lost: it was released elsewhere", lost.getMessage());
    assertFalse(Thread.currentThread().isInterrupted());
  }

  @Test
  void theStageOfABodyIsCancelledWhenItsHoldIsReleasedElsewhere() {
    CompletableFuture<String> never = new CompletableFuture<>();
    CompletableFuture<String> result =
        client.withLockAsync(
            "orders",
            OPTIONS,
            lock -> {
              sidecar.release(lock.holdId());
              return never;
            });
    Sidecar.until("it ends", result::isDone);
    assertInstanceOf(LockLostException.class, Stage.failureOf(result));
    assertTrue(never.isCancelled());
  }

  @Test
  void aBodyThatReleasesItsLockIsNotInterrupted() throws InterruptedException {
    boolean interrupted =
        client.<Boolean, RuntimeException>withLock(
            "orders",
            OPTIONS,
            lock -> {
              lock.release();
              return Thread.interrupted();
            });
    assertFalse(interrupted);
  }

  @Test
  void anInterruptThatTheBodyHasNotSeenDoesNotOutliveIt() {
    for (int i = 0; i < 20; i++) {
      assertThrows(
          LockLostException.class,
          () ->
              client.withLock(
                  "orders",
                  OPTIONS,
                  lock -> {
                    sidecarExpires(lock);
                    return null;
                  }));
      assertFalse(Thread.currentThread().isInterrupted());
    }
  }

  @Test
  void anInterruptOfOthersWhileABodyCleansUpOutlivesIt() {
    assertThrows(
        LockLostException.class,
        () ->
            client.withLock(
                "orders",
                OPTIONS,
                lock -> {
                  sidecarExpires(lock);
                  try {
                    return new CountDownLatch(1).await(1, TimeUnit.HOURS);
                  } catch (InterruptedException lost) {
                    Thread.currentThread().interrupt(); // as others do who shut down
                    throw lost;
                  }
                }));
    assertTrue(Thread.interrupted());
  }

  /** Has the lock lost without a look at the interrupt, as a body does that computes. */
  private void sidecarExpires(Lock lock) {
    Thread helper = new Thread(() -> sidecar.expire("orders"));
    helper.start();
    while (lock.error().isEmpty()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void nobodyIsInterruptedWhenTheLossComesAsTheBodyEnds() throws InterruptedException {
    for (int i = 0; i < 200; i++) {
      Thread here = Thread.currentThread();
      Interruption interruption = new Interruption(here);
      Thread other = new Thread(() -> interruption.fire(new SuspendedException("now")));
      other.start();
      interruption.finish(false);
      assertFalse(Thread.interrupted());
      other.join();
      assertFalse(Thread.interrupted());
    }
  }

  @Test
  void aBodyThatFailsFailsWithItsOwnException() throws InterruptedException {
    assertThrows(
        IOException.class,
        () ->
            client.withLock(
                "orders",
                OPTIONS,
                lock -> {
                  throw new IOException("mine");
                }));
    assertEquals(7, client.<Integer, RuntimeException>withLock("orders", ONCE, lock -> 7));
    IOException failed =
        assertThrows(
            IOException.class,
            () ->
                client.withLock(
                    "orders",
                    OPTIONS,
                    lock -> {
                      sidecarExpires(lock);
                      throw new IOException("mine");
                    }));
    assertInstanceOf(LockLostException.class, failed.getSuppressed()[0]);
  }

  @Test
  void aBodyThatIsInterruptedByOthersReleasesItsLock() throws InterruptedException {
    assertThrows(
        InterruptedException.class,
        () ->
            client.withLock(
                "orders",
                OPTIONS,
                lock -> {
                  Thread.currentThread().interrupt();
                  Thread.sleep(1000);
                  return null;
                }));
    assertFree("orders");
  }

  @Test
  void aBodyIsStoppedWhenItIsSuspendedForLongerThanItsGrace() throws InterruptedException {
    CountDownLatch never = new CountDownLatch(1);
    LockOptions graceful = OPTIONS.suspensionGrace(Duration.ofMillis(100));
    assertThrows(
        SuspendedException.class,
        () ->
            client.withLock(
                "orders",
                graceful,
                lock -> {
                  sidecar.suspend(2);
                  never.await();
                  return null;
                }));
    assertFree("orders");
  }

  @Test
  void theStageOfABodyIsCancelledWhenItsLockIsLost() {
    CompletableFuture<String> never = new CompletableFuture<>();
    CompletableFuture<String> result =
        client.withLockAsync(
            "orders",
            OPTIONS,
            lock -> {
              sidecar.expire("orders");
              return never;
            });
    Sidecar.until("it ends", result::isDone);
    assertInstanceOf(LockLostException.class, Stage.failureOf(result));
    assertTrue(never.isCancelled());
  }

  @Test
  void aStageThatIsDoneReleasesItsLock() throws InterruptedException {
    CompletableFuture<Long> token =
        client.withLockAsync(
            "orders", OPTIONS, lock -> CompletableFuture.completedFuture(lock.fencingToken()));
    assertTrue(token.join() > 0);
    assertFree("orders");
  }
}
