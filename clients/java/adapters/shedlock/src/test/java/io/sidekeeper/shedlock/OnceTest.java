package io.sidekeeper.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.Client;
import io.sidekeeper.LockListener;
import io.sidekeeper.LockOptions;
import io.sidekeeper.OnceOptions;
import io.sidekeeper.Policy;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockExtender;
import net.javacrumbs.shedlock.core.LockingTaskExecutor;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Each tick of a job is done once, with ShedLock's own executor. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class OnceTest {
  private static final int PATIENT = 120;
  private static final Duration LONG = Duration.ofHours(1);
  private static final Ticks TONIGHT = at -> "tonight";

  private static LockConfiguration job(Duration atMost) {
    return new LockConfiguration(Instant.now(), "report", atMost, atMost);
  }

  private static SidekeeperLockProvider provider(Sidecar sidecar) {
    return new SidekeeperLockProvider(sidecar.client()).once("report", TONIGHT);
  }

  private static boolean isRun(SidekeeperLockProvider provider) {
    try {
      LockingTaskExecutor executor = new DefaultLockingTaskExecutor(provider);
      return executor.executeWithLock(() -> "ran", job(LONG)).wasExecuted();
    } catch (Throwable failed) {
      throw new AssertionError(failed);
    }
  }

  private static void awaitFree(Sidecar sidecar) throws InterruptedException {
    LockOptions patiently = new LockOptions().waitTimeout(Duration.ofSeconds(PATIENT));
    sidecar.client().acquire("report", patiently).release();
  }

  @Test
  void aTickIsDoneOnceHoweverShortItsJobIs(Sidecar sidecar) throws Exception {
    SidekeeperLockProvider provider = provider(sidecar);
    SimpleLock lock = provider.lock(job(LONG)).orElseThrow();
    LockOptions tries = new LockOptions().waitTimeout(Duration.ZERO);
    assertThrows(LockHeldException.class, () -> sidecar.client().acquire("report", tries));
    assertFalse(isRun(provider));
    lock.unlock();
    awaitFree(sidecar); // though it is to be held for an hour: the record stands instead
    assertFalse(isRun(provider));
    assertTrue(isRun(provider.once("report", at -> "tomorrow")));
    assertTrue(isRun(provider.once("other", TONIGHT).once("report", at -> "later")));
    assertTrue(isRun(new SidekeeperLockProvider(sidecar.client())));
  }

  @Test
  void theTickIsThatOfWhenTheJobBegan(Sidecar sidecar) {
    List<Instant> asked = new CopyOnWriteArrayList<>();
    Ticks ticks =
        at -> {
          asked.add(at);
          return "tonight";
        };
    Instant began = Instant.now();
    provider(sidecar)
        .once("report", ticks)
        .lock(new LockConfiguration(began, "report", LONG, Duration.ZERO))
        .orElseThrow()
        .unlock();
    assertEquals(List.of(began), asked);
  }

  @Test
  void aJobThatThrowsHasDoneItsTick(Sidecar sidecar) throws Exception {
    SidekeeperLockProvider provider = provider(sidecar);
    Runnable fails =
        () -> {
          throw new IllegalStateException("mine");
        };
    assertThrows(
        IllegalStateException.class,
        () -> new DefaultLockingTaskExecutor(provider).executeWithLock(fails, job(LONG)));
    awaitFree(sidecar);
    assertFalse(isRun(provider));
  }

  @Test
  void aTickWhoseProcessDiesIsDoneByAnotherUnlessThatIsNotWanted(Sidecar sidecar) throws Exception {
    try (Client dies = new Client(sidecar.address())) {
      new SidekeeperLockProvider(dies).once("report", TONIGHT).lock(job(LONG)).orElseThrow();
    }
    awaitFree(sidecar);
    OnceOptions skips = new OnceOptions().onLoss(Policy.SKIP);
    assertFalse(isRun(provider(sidecar).once("report", TONIGHT, skips)));
    awaitFree(sidecar);
    assertTrue(isRun(provider(sidecar)));
  }

  @Test
  void aJobThatTakesTooLongDoesItsTickUnlessAnotherHasBegunIt(Sidecar sidecar) throws Exception {
    SimpleLock alone = provider(sidecar).lock(job(Duration.ofSeconds(1))).orElseThrow();
    awaitFree(sidecar);
    alone.unlock();
    awaitFree(sidecar);
    assertFalse(isRun(provider(sidecar)));

    SidekeeperLockProvider tomorrow = provider(sidecar).once("report", at -> "tomorrow");
    SimpleLock late = tomorrow.lock(job(Duration.ofSeconds(1))).orElseThrow();
    awaitFree(sidecar);
    assertTrue(isRun(tomorrow));
    LockException told = assertThrows(LockException.class, late::unlock);
    assertEquals("job report has ended, and another has begun it meanwhile", told.getMessage());
  }

  @Test
  void aJobThatIsTakenForLongerDoesItsTick(Sidecar sidecar) throws Exception {
    SimpleLock first = provider(sidecar).lock(job(Duration.ofSeconds(15))).orElseThrow();
    first.extend(LONG, Duration.ZERO).orElseThrow().unlock();
    awaitFree(sidecar);
    assertFalse(isRun(provider(sidecar)));
  }

  @Test
  void aJobThatLostItsLockDoesItsTickThoughItIsNotTakenForLonger(Sidecar sidecar) throws Exception {
    CompletableFuture<LockLostException> lost = new CompletableFuture<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void lost(LockLostException told) {
            lost.complete(told);
          }
        };
    SidekeeperLockProvider provider =
        new SidekeeperLockProvider(sidecar.client(), new LockOptions().listener(listener))
            .once("report", TONIGHT);
    Runnable job =
        () -> {
          sidecar.expireLock("report");
          lost.orTimeout(PATIENT, TimeUnit.SECONDS).join();
          assertThrows(
              LockExtender.LockCanNotBeExtendedException.class,
              () -> LockExtender.extendActiveLock(LONG, Duration.ZERO));
        };
    new DefaultLockingTaskExecutor(provider).executeWithLock(job, job(LONG));
    awaitFree(sidecar);
    assertFalse(isRun(provider));
  }

  @Test
  void aJobThatLostItsLockIsToldIfAnotherHasBegunItsTick(Sidecar sidecar) throws Exception {
    SimpleLock alone = provider(sidecar).lock(job(LONG)).orElseThrow();
    sidecar.expireLock("report");
    awaitFree(sidecar);
    alone.unlock();
    assertFalse(isRun(provider(sidecar)));

    SidekeeperLockProvider tomorrow = provider(sidecar).once("report", at -> "tomorrow");
    SimpleLock late = tomorrow.lock(job(LONG)).orElseThrow();
    sidecar.expireLock("report");
    awaitFree(sidecar);
    assertTrue(isRun(tomorrow));
    LockException told = assertThrows(LockException.class, late::unlock);
    assertInstanceOf(SupersededException.class, told.getCause());
    assertEquals(Optional.empty(), tomorrow.lock(job(LONG)));
  }

  @Test
  void aKeyThatIsNoneIsTold(Sidecar sidecar) {
    SidekeeperLockProvider provider = provider(sidecar).once("report", Instant::toString);
    SidekeeperException refused =
        assertThrows(SidekeeperException.class, () -> provider.lock(job(LONG)));
    assertEquals("INVALID_FIELD", refused.reason());
  }

  /** Of two machines each has a scheduler, and one begins each tick when the other has ended. */
  @Test
  void schedulersDoEachTickOnce(Sidecar sidecar) throws Exception {
    List<String> done = new CopyOnWriteArrayList<>();
    Ticks seconds = Ticks.every(Duration.ofSeconds(1));
    List<ScheduledExecutorService> machines =
        List.of(
            Executors.newSingleThreadScheduledExecutor(),
            Executors.newSingleThreadScheduledExecutor());
    CountDownLatch tried = new CountDownLatch(8);
    try (Client one = new Client(sidecar.address());
        Client two = new Client(sidecar.address())) {
      for (Client client : List.of(one, two)) {
        int index = client == one ? 0 : 1;
        ThreadLocal<String> tick = new ThreadLocal<>();
        Ticks noted =
            at -> {
              tick.set(seconds.keyOf(at));
              return tick.get();
            };
        LockingTaskExecutor executor =
            new DefaultLockingTaskExecutor(
                new SidekeeperLockProvider(client).once("report", noted));
        Runnable job = () -> done.add(tick.get());
        machines
            .get(index)
            .scheduleAtFixedRate(
                () -> {
                  executor.executeWithLock(job, job(LONG));
                  tried.countDown();
                },
                index * 200L,
                1000,
                TimeUnit.MILLISECONDS);
      }
      assertTrue(tried.await(PATIENT, TimeUnit.SECONDS));
      for (ScheduledExecutorService machine : machines) {
        machine.shutdown();
        assertTrue(machine.awaitTermination(PATIENT, TimeUnit.SECONDS));
      }
    }
    assertTrue(done.size() >= 3, done::toString);
    assertEquals(new HashSet<>(done).size(), done.size(), done::toString);
  }
}
