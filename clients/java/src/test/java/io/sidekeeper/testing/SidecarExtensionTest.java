package io.sidekeeper.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.Client;
import io.sidekeeper.Lease;
import io.sidekeeper.LeaseOptions;
import io.sidekeeper.Lock;
import io.sidekeeper.LockOptions;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The test kit, used as applications use it. */
@Timeout(60)
@ExtendWith(SidecarExtension.class)
class SidecarExtensionTest {
  private static final int PATIENT = 30;
  private static final Duration LONG = Duration.ofHours(1);
  private static Path last = Path.of("/nowhere");

  private Sidecar same;

  @BeforeEach
  void remember(Sidecar sidecar) {
    assertFalse(Files.exists(last), "the sidecar of the test before is left behind");
    same = sidecar;
    last = folderOf(sidecar.address());
  }

  @AfterAll
  static void allAreClosed() {
    assertFalse(Files.exists(last), "the last sidecar is left behind");
  }

  /** Where the sidecar's socket lies: its own folder, which it removes when it ends. */
  private static Path folderOf(String address) {
    return Path.of(address.substring("unix://".length())).getParent();
  }

  private static void until(BooleanSupplier happened) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENT);
    while (!happened.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, "it does not happen");
      TimeUnit.MILLISECONDS.sleep(5);
    }
  }

  private static void awaitLost(Lock lock) throws InterruptedException {
    until(() -> lock.error().isPresent());
    assertFalse(lock.isValid());
  }

  private static LockOptions within(Duration limit) {
    return new LockOptions().waitTimeout(limit);
  }

  @Test
  void aWorkerThatLosesItsLockIsTold(Sidecar sidecar) throws Exception {
    assertSame(same, sidecar);
    try (Client client = new Client(sidecar.address())) {
      assertThrows(
          LockLostException.class,
          () ->
              client.withLock(
                  "orders",
                  new LockOptions(),
                  lock -> {
                    sidecar.expireLock("orders");
                    TimeUnit.SECONDS.sleep(PATIENT); // interrupted when the lock is lost
                    return "finished";
                  }));
    }
  }

  @Test
  void leasesExpireInThreeWays(Sidecar sidecar) throws Exception {
    Client client = sidecar.client();
    Lease lease = client.openLease(new LeaseOptions());
    Lock held = client.acquire("with-a-lease", new LockOptions().lease(lease));
    Lock alone = client.acquire("alone", new LockOptions());
    Lock other = client.acquire("other", new LockOptions());

    sidecar.expireLease(lease.id());
    awaitLost(held);
    sidecar.expireLock("alone");
    awaitLost(alone);
    assertTrue(other.isValid());
    assertEquals(1, sidecar.expireAll());
    awaitLost(other);
    SidekeeperException refused =
        assertThrows(SidekeeperException.class, () -> sidecar.expireLock("other"));
    assertEquals("HOLD_NOT_FOUND", refused.reason());
  }

  @Test
  void anOperatorEndsAHold(Sidecar sidecar) throws Exception {
    Lock lock = sidecar.client().acquire("orders", new LockOptions());
    assertEquals(1, sidecar.client().revoke("orders", "", Duration.ZERO));
    awaitLost(lock);
  }

  @Test
  void aSilenceThatLastsLosesTheLock() throws Exception {
    try (Sidecar sidecar = new Sidecar(Duration.ofSeconds(6))) {
      Lock lock = sidecar.client().acquire("orders", new LockOptions());
      sidecar.suspend(LONG);
      awaitLost(lock);
      sidecar.suspend(Duration.ZERO);
      sidecar.client().acquire("orders", within(Duration.ofSeconds(PATIENT))).close();
    }
  }

  @Test
  void grantsAreLate(Sidecar sidecar) throws Exception {
    sidecar.delayGrants(LONG);
    Duration soon = Duration.ofMillis(100);
    assertThrows(
        WaitTimeoutException.class, () -> sidecar.client().acquire("orders", within(soon)));
    sidecar.delayGrants(Duration.ZERO);
    sidecar.client().acquire("orders", new LockOptions()).close();
  }

  @Test
  void sidecarsDoNotMeet(Sidecar sidecar) throws Exception {
    sidecar.client().acquire("orders", within(Duration.ZERO));
    Sidecar other = new Sidecar();
    assertNotEquals(sidecar.address(), other.address());
    other.client().acquire("orders", within(Duration.ZERO));
    other.close();
    assertFalse(Files.exists(folderOf(other.address())));
    other.close();
  }

  /** What a run of tests is that is killed. */
  static final class Run {
    public static void main(String[] arguments) throws IOException {
      System.out.println(new Sidecar().address());
      System.in.read();
    }
  }

  @Test
  void nothingIsLeftOfARunThatWasKilled() throws Exception {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    Process run =
        new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), Run.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    Path folder = folderOf(run.inputReader().readLine());
    assertTrue(Files.exists(folder));
    run.destroyForcibly();
    until(() -> !Files.exists(folder));
  }

  @Test
  void whoeverHasNoProgramIsToldWhereItIs() {
    IllegalStateException told =
        assertThrows(
            IllegalStateException.class,
            () -> new Sidecar("/nowhere/sidekeeper", Duration.ofSeconds(6)));
    assertTrue(told.getMessage().contains("sidekeeper/releases"), told.getMessage());
  }

  @Test
  void aProgramThatDoesNotStartIsAnError() {
    Duration tooShort = Duration.ofSeconds(1);
    IllegalStateException told =
        assertThrows(IllegalStateException.class, () -> new Sidecar(tooShort));
    assertTrue(told.getMessage().endsWith("dev does not start"), told.getMessage());
  }
}
