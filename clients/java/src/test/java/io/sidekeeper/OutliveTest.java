package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LostException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Leases that outlive their sidecar: the real program, killed and started again over the ensemble
 * of another process.
 */
@Timeout(60)
@EnabledOnOs(value = OS.LINUX, disabledReason = "leases are resumed on Linux only")
class OutliveTest {
  private static final int TTL = 4;
  private static final Pattern ENSEMBLE = Pattern.compile("ensemble: +(\\S+),");

  private @TempDir Path folder;
  private String address;
  private String server;
  private Process ensemble;
  private Process sidecar;
  private Client client;
  private Lease lease;

  @BeforeEach
  void open() throws Exception {
    address = "unix://" + folder.resolve("s.sock");
    ensemble = launch("dev", "--listen", "unix://" + folder.resolve("dev.sock"));
    server = said(ensemble, ENSEMBLE).group(1);
    start();
    client = new Client(address);
    lease = client.openLease(new LeaseOptions());
  }

  @AfterEach
  void close() throws Exception {
    client.close();
    kill(sidecar);
    kill(ensemble);
  }

  private Process launch(String... flags) throws IOException {
    List<String> command = new ArrayList<>(List.of(Sidecar.program()));
    command.addAll(List.of(flags));
    command.add("--log-level=error");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("TMPDIR", folder.toString());
    return builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  private static Matcher said(Process process, Pattern expected) throws IOException {
    BufferedReader lines = process.inputReader();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Matcher found = expected.matcher(line);
      if (found.find()) {
        return found;
      }
    }
    throw new AssertionError("the program does not start");
  }

  private void start() throws IOException {
    sidecar =
        launch(
            "serve",
            "--zookeeper=" + server,
            "--listen=" + address,
            "--operator-listen=",
            "--audit-log=off",
            "--state-dir=" + folder.resolve("state"),
            "--session-timeout=" + TTL + "s",
            "--tick-time=200ms",
            "--heartbeat=250ms");
    said(sidecar, Pattern.compile("listening"));
  }

  private static void kill(Process process) throws InterruptedException {
    process.destroyForcibly();
    assertTrue(process.waitFor(Sidecar.PATIENT, TimeUnit.SECONDS));
  }

  private LockOptions onLease() {
    return new LockOptions().lease(lease);
  }

  @Test
  @SuppressWarnings("try") // a scope is closed, and nothing else
  void whatStandsOnALeaseAndLocksWithoutOneOutliveTheirSidecar() throws Exception {
    List<String> told = new CopyOnWriteArrayList<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void suspended(Duration remaining) {
            told.add("suspended");
          }

          @Override
          public void resumed() {
            told.add("resumed");
          }
        };
    Lock lock = client.acquire("held", onLease().listener(listener));
    Lock alone = client.acquire("alone");
    List<WantedLock> both = List.of(new WantedLock("one"), new WantedLock("two"));
    Locks several = client.acquireAll(both, new LocksOptions());
    List<Held> all = List.of(lease, lock, alone, several);
    Membership member = client.join("group", "member", new JoinOptions().lease(lease));
    Lease another = client.openLease(new LeaseOptions());
    Lock ahead = client.acquire("awaited", new LockOptions().lease(another));
    CompletableFuture<Lock> waiting = client.acquireAsync("awaited", onLease());
    Sidecar.until(
        "it waits",
        () -> {
          try {
            return client.getLock("awaited").waiters().size() == 1;
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
        });
    for (int round = 0; round < 2; round++) {
      kill(sidecar);
      Sidecar.until("they are suspended", () -> all.stream().allMatch(Held::isSuspended));
      assertTrue(lock.isValid() && alone.isValid());
      start();
      Sidecar.until("they are resumed", () -> all.stream().noneMatch(Held::isSuspended));
    }
    Sidecar.pause(TTL + 1); // for longer than anything is valid without the sidecar
    assertEquals("suspended", told.get(0));
    assertEquals("resumed", told.get(told.size() - 1));
    assertTrue(all.stream().allMatch(Held::isValid) && member.isValid());
    try (GuardScope kept = several.guard()) {
      client.config().put("guarded", "by the hold that has kept its id");
    }
    assertFalse(waiting.isDone());
    try (Client rival = new Client(address)) {
      LockOptions impatient = new LockOptions().waitTimeout(Duration.ZERO);
      assertThrows(LockHeldException.class, () -> rival.acquire("held", impatient));
      assertThrows(LockHeldException.class, () -> rival.acquire("alone", impatient));
      alone.release();
      rival.acquire("alone", impatient);
      LocksOptions once = new LocksOptions().waitTimeout(Duration.ZERO);
      assertThrows(LockHeldException.class, () -> rival.acquireAll(both, once));
      several.release();
      rival.acquireAll(both, once);
      ahead.release();
      waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS).release();
      lock.release();
      assertTrue(rival.acquire("held", impatient).fencingToken() > lock.fencingToken());
    }
  }

  @Test
  void aLockThatIsReleasedWhileItsSidecarIsAwayIsFreeWhenThatIsConfirmed() throws Exception {
    Lock lock = client.acquire("held", onLease());
    kill(sidecar);
    Sidecar.until("it is suspended", lease::isSuspended);
    CompletableFuture<Void> released = lock.releaseAsync();
    start();
    released.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    try (Client rival = new Client(address)) {
      rival.acquire("held", new LockOptions().waitTimeout(Duration.ZERO));
    }
  }

  @Test
  void anAttemptThatIsFinishedWhileItsSidecarIsAwayIsRecordedWhenThatIsBack() throws Exception {
    Attempt alone = client.begin("alone", "k", new OnceOptions());
    Attempt onLease = client.begin("held", "k", new OnceOptions().lease(lease));
    kill(sidecar);
    Sidecar.until("they are suspended", () -> alone.isSuspended() && onLease.isSuspended());
    CompletableFuture<Void> first = alone.finishAsync(Outcome.SUCCEEDED, "");
    CompletableFuture<Void> second = onLease.finishAsync(Outcome.SUCCEEDED, "");
    assertFalse(first.isDone() || second.isDone());
    start();
    first.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    second.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertTrue(lease.isValid());
    for (String name : List.of("alone", "held")) {
      assertThrows(AlreadyDoneException.class, () -> client.begin(name, "k", new OnceOptions()));
    }
  }

  @Test
  void anAttemptOutlivesItsSidecar() throws Exception {
    Attempt attempt = client.begin("alone", "k", new OnceOptions());
    kill(sidecar);
    Sidecar.until("it is suspended", attempt::isSuspended);
    start();
    Sidecar.until("it is resumed", () -> !attempt.isSuspended());
    Sidecar.pause(TTL + 1); // for longer than anything is valid without the sidecar
    assertTrue(attempt.isValid());
    attempt.finish(Outcome.SUCCEEDED, "");
    assertThrows(AlreadyDoneException.class, () -> client.begin("alone", "k", new OnceOptions()));
  }

  @Test
  void aPermitKeepsItsNumberWhenItIsResumed() throws Exception {
    PermitsOptions numbered = new PermitsOptions().numbered(true);
    client.createSemaphore("ids", 3);
    Permits first = client.acquirePermits("ids", numbered);
    Permits second = client.acquirePermits("ids", numbered.lease(lease));
    first.release();
    kill(sidecar);
    Sidecar.until("it is suspended", second::isSuspended);
    start();
    Sidecar.until("it is resumed", () -> !second.isSuspended());
    Sidecar.pause(TTL + 1); // for longer than anything is valid without the sidecar
    assertTrue(second.isValid());
    assertEquals(OptionalInt.of(1), second.number());
    try (Permits third = client.acquirePermits("ids", numbered)) {
      assertEquals(OptionalInt.of(0), third.number());
    }
    second.release();
  }

  @Test
  void aTickOutlivesItsSidecar() throws Exception {
    Schedules schedules = new Schedules(address);
    schedules.put("reports");
    schedules.run("reports", "now");
    Tick tick = client.work("reports", new WorkOptions());
    kill(sidecar);
    Sidecar.until("it is suspended", tick::isSuspended);
    start();
    Sidecar.until("it is resumed", () -> !tick.isSuspended());
    Sidecar.pause(TTL + 1); // for longer than anything is valid without the sidecar
    assertTrue(tick.isValid());
    tick.finish(Outcome.SUCCEEDED, "");
    assertEquals(List.of("now succeeded 1"), schedules.history("reports"));
  }

  @Test
  void aLeaseWhoseSidecarIsAwayForTooLongIsLostWhenItsValidityRunsOut() throws Exception {
    Lock lock = client.acquire("held", onLease());
    kill(sidecar);
    long until = System.nanoTime() + lock.validFor().toNanos();
    Sidecar.until("it is lost", () -> lock.error().isPresent());
    assertTrue(System.nanoTime() - until < 500_000_000L);
    assertFalse(lock.isValid());
    assertThrows(LostException.class, lease::close);
  }

  @Test
  void aLeaseThatTheNextSidecarDoesNotKnowIsLostAtOnce() throws Exception {
    Lock lock = client.acquire("held", onLease());
    kill(sidecar);
    try (Stream<Path> state = Files.walk(folder.resolve("state"))) {
      state.sorted(Comparator.reverseOrder()).forEach(file -> assertTrue(file.toFile().delete()));
    }
    start();
    Sidecar.until("it is lost", 2, () -> lock.error().isPresent());
    assertFalse(lease.isValid());
  }
}
