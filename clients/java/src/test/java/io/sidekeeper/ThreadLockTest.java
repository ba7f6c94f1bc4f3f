package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SidekeeperException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Locks as Java knows them. */
@Timeout(120)
class ThreadLockTest {
  private Sidecar sidecar;
  private Client client;
  private ThreadLock lock;

  /** Another program's, as far as the sidecar knows. */
  private ThreadLock other;

  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
    lock = client.threadLock("orders");
    other = client.threadLock("orders");
  }

  @AfterEach
  void disconnect() {
    client.close();
    sidecar.close();
  }

  /** Does something on a thread of its own. */
  private static <T> T elsewhere(Callable<T> what) throws Exception {
    try {
      return begin(what, new CompletableFuture<>()).get(Sidecar.PATIENT, TimeUnit.SECONDS);
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof Exception known ? known : failed;
    }
  }

  private static <T> CompletableFuture<T> begin(
      Callable<T> what, CompletableFuture<Thread> started) {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                result.complete(what.call());
              } catch (Throwable failed) {
                result.completeExceptionally(failed);
              }
            });
    thread.start();
    started.complete(thread);
    return result;
  }

  private static boolean tryOnce(ThreadLock lock) {
    boolean locked = lock.tryLock();
    if (locked) {
      lock.unlock();
    }
    return locked;
  }

  private void awaitWaiter() throws InterruptedException {
    try (Watch<LockView> views = client.watchLock("orders")) {
      while (views.take().waiters().size() != 1) {
        Thread.onSpinWait();
      }
    }
  }

  @Test
  void oneThreadHoldsIt() throws Exception {
    lock.lock();
    assertTrue(lock.isHeldByCurrentThread());
    assertTrue(lock.hold().fencingToken() > 0);
    assertFalse(elsewhere(() -> tryOnce(lock)));
    assertFalse(elsewhere(lock::isHeldByCurrentThread));
    assertFalse(tryOnce(other));
    lock.unlock();
    assertFalse(lock.isHeldByCurrentThread());
    // What has failed leaves its place a moment later.
    Sidecar.until("it is free", () -> tryOnce(other));
    assertTrue(elsewhere(() -> tryOnce(lock)));
  }

  @Test
  void itIsInUseWhileSomeThreadHoldsItOrWaits() throws Exception {
    assertFalse(lock.isInUse());
    other.lock();
    assertFalse(lock.isInUse());
    CompletableFuture<Boolean> waiting =
        begin(() -> lock.tryLock(Sidecar.PATIENT, TimeUnit.SECONDS), new CompletableFuture<>());
    awaitWaiter();
    assertTrue(lock.isInUse());
    other.unlock();
    assertTrue(waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS));
    assertTrue(lock.isInUse());

    other = client.threadLock("others");
    other.lock();
    other.lock();
    other.unlock();
    assertTrue(other.isInUse());
    other.unlock();
    assertFalse(other.isInUse());
  }

  @Test
  void itIsFreeWhenItWasUnlockedAsOftenAsLocked() throws Exception {
    lock.lockInterruptibly();
    lock.lock();
    assertTrue(lock.tryLock());
    assertTrue(lock.tryLock(1, TimeUnit.SECONDS));
    long token = lock.hold().fencingToken();
    for (int unlocked = 0; unlocked < 4; unlocked++) {
      assertEquals(token, lock.hold().fencingToken());
      assertFalse(tryOnce(other));
      lock.unlock();
    }
    Sidecar.until("it is free", () -> tryOnce(other));
  }

  @Test
  void onlyTheThreadThatLockedUnlocks() throws Exception {
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    lock.lock();
    assertThrows(
        IllegalMonitorStateException.class,
        () ->
            elsewhere(
                () -> {
                  assertThrows(IllegalMonitorStateException.class, lock::hold);
                  lock.unlock();
                  return null;
                }));
    assertTrue(lock.isHeldByCurrentThread());
    lock.unlock();
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    assertThrows(IllegalMonitorStateException.class, lock::hold);
  }

  @Test
  void aLossIsToldByWhateverIsDoneNext() throws Exception {
    lock.lock();
    sidecar.expire("orders");
    lock.hold().lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertTrue(elsewhere(() -> tryOnce(other)), "others can have it");

    assertFalse(lock.isHeldByCurrentThread());
    assertThrows(LockLostException.class, lock::lock);
    assertThrows(LockLostException.class, lock::lockInterruptibly);
    assertThrows(LockLostException.class, lock::tryLock);
    assertThrows(LockLostException.class, () -> lock.tryLock(1, TimeUnit.SECONDS));
    assertThrows(LockLostException.class, lock::unlock);

    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    assertTrue(elsewhere(() -> tryOnce(lock)), "it can be locked anew");
  }

  @Test
  void whatIsTakenTwiceAndLostIsToldWhenItIsGivenUp() throws Exception {
    lock.lock();
    lock.lock();
    sidecar.expire("orders");
    lock.hold().lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    lock.unlock();
    assertThrows(LockLostException.class, lock::unlock);
  }

  @Test
  void whoWaitsForALimitedTimeIsNotGrantedIt() throws Exception {
    other.lock();
    assertFalse(lock.tryLock(50, TimeUnit.MILLISECONDS));
    assertFalse(lock.tryLock(0, TimeUnit.SECONDS));
    assertFalse(lock.tryLock(-1, TimeUnit.SECONDS));
    while (!client.getLock("orders").waiters().isEmpty()) {
      Sidecar.pause(0.005); // what has failed leaves its place a moment later
    }

    CompletableFuture<Boolean> waiting =
        begin(() -> lock.tryLock(Sidecar.PATIENT, TimeUnit.SECONDS), new CompletableFuture<>());
    awaitWaiter();
    other.unlock();
    assertTrue(waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS));
  }

  @Test
  void aThreadThatIsInterruptedWaitsNoMore() throws Exception {
    other.lock();
    CompletableFuture<Thread> started = new CompletableFuture<>();
    CompletableFuture<Throwable> ended =
        begin(() -> assertThrows(InterruptedException.class, lock::lockInterruptibly), started);
    awaitWaiter();
    started.get().interrupt();
    assertInstanceOf(InterruptedException.class, ended.get(Sidecar.PATIENT, TimeUnit.SECONDS));
    other.unlock();
    assertTrue(tryOnce(lock));
  }

  @Test
  void lockIsNotInterrupted() throws Exception {
    other.lock();
    CompletableFuture<Thread> started = new CompletableFuture<>();
    CompletableFuture<Boolean> locked =
        begin(
            () -> {
              lock.lock();
              return Thread.interrupted() && lock.isHeldByCurrentThread();
            },
            started);
    awaitWaiter();
    started.get().interrupt();
    assertFalse(locked.isDone());
    other.unlock();
    assertTrue(locked.get(Sidecar.PATIENT, TimeUnit.SECONDS));
  }

  @Test
  void whatFailsLeavesNothingHeld() throws Exception {
    sidecar.kill();
    assertThrows(SidekeeperException.class, lock::tryLock);
    assertThrows(IllegalMonitorStateException.class, lock::unlock);
    assertThrows(SidekeeperException.class, () -> elsewhere(lock::tryLock));
  }

  @Test
  void thereAreNoConditions() {
    assertThrows(UnsupportedOperationException.class, lock::newCondition);
  }

  /** A program that adds to the number in a file under the lock, and then holds it for good. */
  static final class Program {
    static final int TIMES = 50;

    public static void main(String[] arguments) throws IOException {
      Path file = Path.of(arguments[1]);
      ThreadLock lock = new Client(arguments[0]).threadLock("orders");
      for (int i = 0; i < TIMES; i++) {
        lock.lock();
        int number = Integer.parseInt(Files.readString(file));
        Files.writeString(file, String.valueOf(number + 1));
        lock.unlock();
      }
      lock.lock();
      System.out.println("holds");
      System.in.read();
    }
  }

  private Process start(Path file) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    return new ProcessBuilder(
            java, "-cp", path, Program.class.getName(), sidecar.address, file.toString())
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
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
  void ofTwoProgramsOneIsKilledAndTheOtherGoesOn(@TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("number"), "0");
    Process one = start(file);
    Process two = start(file);
    try {
      CompletableFuture<Process> first = holding(one);
      CompletableFuture<Process> second = holding(two);
      Process holder =
          (Process) CompletableFuture.anyOf(first, second).get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertFalse(tryOnce(lock));
      holder.destroyForcibly(); // as kill -9 does
      (holder == one ? second : first).get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertEquals(String.valueOf(2 * Program.TIMES), Files.readString(file));
    } finally {
      one.destroyForcibly();
      two.destroyForcibly();
    }
  }
}
