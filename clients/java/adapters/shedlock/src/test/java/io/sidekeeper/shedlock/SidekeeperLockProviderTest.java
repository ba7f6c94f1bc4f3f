package io.sidekeeper.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.sidekeeper.Client;
import io.sidekeeper.LockListener;
import io.sidekeeper.LockOptions;
import io.sidekeeper.LockView;
import io.sidekeeper.Watch;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.WaitTimeoutException;
import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockAssert;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockingTaskExecutor.TaskResult;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** With ShedLock's own executor, as its schedulers use it. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class SidekeeperLockProviderTest {
  private static final int PATIENT = 120;
  private static final Duration LONG = Duration.ofHours(1);
  private static final Duration NONE = Duration.ZERO;
  private static final LockOptions ONCE = new LockOptions().waitTimeout(Duration.ZERO);

  private static LockConfiguration job(Duration atMost, Duration atLeast) {
    return new LockConfiguration(Instant.now(), "report", atMost, atLeast);
  }

  private static LockingTaskExecutor executor(Sidecar sidecar) {
    return new DefaultLockingTaskExecutor(new SidekeeperLockProvider(sidecar.client()));
  }

  /** Returns when somebody else has had the lock. */
  private static void awaitFree(Sidecar sidecar) throws InterruptedException {
    LockOptions patiently = new LockOptions().waitTimeout(Duration.ofSeconds(PATIENT));
    sidecar.client().acquire("report", patiently).release();
  }

  private static void awaitNoHolder(Sidecar sidecar) throws InterruptedException {
    try (Watch<LockView> views = sidecar.client().watchLock("report")) {
      while (!views.take().holders().isEmpty()) {
        Thread.onSpinWait();
      }
    }
  }

  @Test
  void aJobRunsOnceAtATime(Sidecar sidecar) throws Throwable {
    LockingTaskExecutor executor = executor(sidecar);
    TaskResult<Boolean> first =
        executor.executeWithLock(
            () -> {
              LockAssert.assertLocked();
              return CompletableFuture.supplyAsync(() -> isRun(executor))
                  .get(PATIENT, TimeUnit.SECONDS);
            },
            job(LONG, NONE));
    assertEquals(false, first.getResult());
    awaitFree(sidecar); // of the place of the one that did not run, too
    assertTrue(isRun(executor));
  }

  @Test
  void aJobWhoseNameIsNoneIsLockedByOne(Sidecar sidecar) throws Throwable {
    LockConfiguration job = new LockConfiguration(Instant.now(), "report:daily", LONG, NONE);
    TaskResult<Integer> holders =
        executor(sidecar)
            .executeWithLock(
                () -> sidecar.client().getLock("_-report_3adaily").holders().size(), job);
    assertEquals(1, holders.getResult());
  }

  private static boolean isRun(LockingTaskExecutor executor) {
    try {
      return executor.executeWithLock(() -> "ran", job(LONG, NONE)).wasExecuted();
    } catch (Throwable failed) {
      throw new AssertionError(failed);
    }
  }

  @Test
  void aJobThatIsDoneSoonLeavesTheLockHeldForTheLeastTime(Sidecar sidecar) throws Exception {
    long began = System.nanoTime();
    Duration least = Duration.ofSeconds(2);
    executor(sidecar).executeWithLock((Runnable) () -> {}, job(LONG, least));
    awaitFree(sidecar);
    assertTrue(System.nanoTime() - began >= least.toNanos());

    executor(sidecar).executeWithLock((Runnable) () -> {}, job(LONG, LONG));
    assertThrows(LockHeldException.class, () -> sidecar.client().acquire("report", ONCE));
  }

  @Test
  void aJobThatTakesTooLongLosesTheLockAndIsTold(Sidecar sidecar) {
    Duration most = Duration.ofSeconds(1);
    long began = System.nanoTime();
    LockException told =
        assertThrows(
            LockException.class,
            () ->
                executor(sidecar)
                    .executeWithLock(
                        (LockingTaskExecutor.Task)
                            () -> {
                              awaitFree(sidecar);
                              assertTrue(System.nanoTime() - began >= most.toNanos());
                            },
                        job(most, NONE)));
    assertEquals(
        "lock report was released after PT1S, before its job has ended: others may have run since",
        told.getMessage());
  }

  @Test
  void aJobIsTakenForLongerOrShorterWithoutAGap(Sidecar sidecar) throws Exception {
    SidekeeperLockProvider provider = new SidekeeperLockProvider(sidecar.client());
    SimpleLock first = provider.lock(job(LONG, NONE)).orElseThrow();
    long token = sidecar.client().getLock("report").holders().get(0).fencingToken();
    SimpleLock second = first.extend(LONG.multipliedBy(2), NONE).orElseThrow();
    assertThrows(IllegalStateException.class, first::unlock);
    assertEquals(token, sidecar.client().getLock("report").holders().get(0).fencingToken());

    SimpleLock third = second.extend(Duration.ofSeconds(1), NONE).orElseThrow();
    awaitFree(sidecar);
    assertEquals(Optional.empty(), third.extend(LONG, NONE));
  }

  @Test
  void whatIsTakenForLongerDoesNotEndWithTheFirstTime(Sidecar sidecar) {
    SidekeeperLockProvider provider = new SidekeeperLockProvider(sidecar.client());
    SimpleLock first = provider.lock(job(Duration.ofSeconds(15), NONE)).orElseThrow();
    SimpleLock longer = first.extend(LONG, NONE).orElseThrow();
    LockOptions afterThat = new LockOptions().waitTimeout(Duration.ofSeconds(16));
    assertThrows(WaitTimeoutException.class, () -> sidecar.client().acquire("report", afterThat));
    longer.unlock();
  }

  @Test
  void aJobThatLostItsLockIsTold(Sidecar sidecar) {
    LockException told =
        assertThrows(
            LockException.class,
            () ->
                executor(sidecar)
                    .executeWithLock(
                        (Runnable) () -> sidecar.expireLock("report"), job(LONG, NONE)));
    assertInstanceOf(LockLostException.class, told.getCause());
  }

  /** The sidecar cannot confirm it while its ensemble is silent. */
  @Test
  void aJobWhoseReleaseIsNotConfirmedHasSucceeded() throws Throwable {
    try (Sidecar sidecar = new Sidecar(Duration.ofSeconds(40))) {
      TaskResult<String> result =
          executor(sidecar)
              .executeWithLock(
                  () -> {
                    sidecar.suspend(Duration.ofSeconds(20));
                    return "done";
                  },
                  job(LONG, NONE));
      assertEquals("done", result.getResult());
    }
  }

  @Test
  void whatWasLostIsNotExtended(Sidecar sidecar) throws Exception {
    CompletableFuture<LockLostException> told = new CompletableFuture<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void lost(LockLostException lost) {
            told.complete(lost);
          }
        };
    LockOptions options = new LockOptions().listener(listener);
    SidekeeperLockProvider provider = new SidekeeperLockProvider(sidecar.client(), options);
    SimpleLock lock = provider.lock(job(LONG, LONG)).orElseThrow();
    sidecar.expireLock("report");
    told.get(PATIENT, TimeUnit.SECONDS);
    assertEquals(Optional.empty(), lock.extend(LONG, NONE));
    LockException end = assertThrows(LockException.class, lock::unlock);
    assertInstanceOf(LockLostException.class, end.getCause());
  }

  @Test
  void withoutASidecarNoJobRuns(Sidecar sidecar) {
    try (Client away = new Client("unix:///nowhere")) {
      LockingTaskExecutor executor =
          new DefaultLockingTaskExecutor(new SidekeeperLockProvider(away));
      assertThrows(
          SidekeeperException.class,
          () -> executor.executeWithLock((Runnable) () -> fail("it runs"), job(LONG, NONE)));
    }
  }

  /** A program with a job that adds to the number in a file, and then one that does not end. */
  static final class Program {
    static final int TIMES = 20;

    public static void main(String[] arguments) throws Throwable {
      Path file = Path.of(arguments[1]);
      Duration least = Duration.parse(arguments[2]);
      LockingTaskExecutor executor =
          new DefaultLockingTaskExecutor(new SidekeeperLockProvider(new Client(arguments[0])));
      for (int ran = 0; ran < TIMES; ) {
        ran += executor.executeWithLock(() -> count(file), job(LONG, NONE)).wasExecuted() ? 1 : 0;
      }
      while (true) {
        executor.executeWithLock(
            () -> {
              System.out.println("holds");
              return System.in.read();
            },
            job(LONG, least));
      }
    }

    private static int count(Path file) throws IOException {
      int number = Integer.parseInt(Files.readString(file)) + 1;
      Files.writeString(file, String.valueOf(number));
      return number;
    }
  }

  private static Process start(Sidecar sidecar, Path file, Duration least) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    List<String> command = new ArrayList<>(List.of(java, "-cp", path, Program.class.getName()));
    command.addAll(List.of(sidecar.address(), file.toString(), least.toString()));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  /** Completed with the program when it holds the lock for good. */
  private static CompletableFuture<Process> holding(Process program) {
    BufferedReader said = program.inputReader();
    return CompletableFuture.supplyAsync(() -> said.lines().findFirst().orElse("ended"))
        .thenApply(
            line -> {
              assertEquals("holds", line);
              return program;
            });
  }

  @Test
  void ofTwoProgramsOneIsKilledAndTheOtherGoesOn(Sidecar sidecar, @TempDir Path folder)
      throws Exception {
    Path file = Files.writeString(folder.resolve("number"), "0");
    Process one = start(sidecar, file, NONE);
    Process two = start(sidecar, file, NONE);
    try {
      CompletableFuture<Process> first = holding(one);
      CompletableFuture<Process> second = holding(two);
      Process holder =
          (Process) CompletableFuture.anyOf(first, second).get(PATIENT, TimeUnit.SECONDS);
      assertFalse(isRun(executor(sidecar)));
      holder.destroyForcibly(); // as kill -9 does
      (holder == one ? second : first).get(PATIENT, TimeUnit.SECONDS);
      assertEquals(String.valueOf(2 * Program.TIMES), Files.readString(file));
    } finally {
      one.destroyForcibly();
      two.destroyForcibly();
    }
  }

  @Test
  void theLeastTimeOutlivesAProgramThatIsKilled(Sidecar sidecar, @TempDir Path folder)
      throws Exception {
    Path file = Files.writeString(folder.resolve("number"), "0");
    Process program = start(sidecar, file, LONG);
    holding(program).get(PATIENT, TimeUnit.SECONDS);
    program.destroyForcibly();
    awaitNoHolder(sidecar);
    assertFalse(isRun(executor(sidecar)));
  }
}
