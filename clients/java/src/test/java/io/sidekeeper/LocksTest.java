package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the scenarios do not tell of locks. */
@Timeout(60)
class LocksTest {
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
  void aLockIsReleasedAtTheEndOfItsBlock() throws InterruptedException {
    try (Lock lock = client.acquire("orders")) {
      lock.check();
      assertTrue(lock.isValid());
      assertTrue(lock.validFor().compareTo(Duration.ofSeconds(4)) <= 0);
      assertTrue(lock.fencingToken() > 0);
      assertThrows(LockHeldException.class, () -> client.acquire("orders", ONCE));
    }
    assertFree("orders");
  }

  @Test
  void aBlockWhoseLockWasLostEndsWithTheLoss() {
    LockLostException lost =
        assertThrows(
            LockLostException.class,
            () -> {
              try (Lock lock = client.acquire("orders")) {
                sidecar.expire("orders");
                lock.lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
                lock.check();
              }
            });
    assertEquals("LEASE_LOST", lost.why().reason());
    assertEquals("lock orders", lost.what());
  }

  @Test
  void whoeverIsInterruptedWhileWaitingGivesUpItsPlace() throws Exception {
    try (Lock held = client.acquire("orders");
        Watch<LockView> views = client.watchLock("orders")) {
      CompletableFuture<Throwable> ended = new CompletableFuture<>();
      Thread waiting =
          new Thread(
              () -> {
                try (Lock got = client.acquire("orders")) {
                  ended.complete(new AssertionError("granted " + got));
                } catch (InterruptedException interrupted) {
                  ended.complete(interrupted);
                }
              });
      waiting.start();
      awaitWaiters(views, 1);
      waiting.interrupt();
      assertInstanceOf(InterruptedException.class, ended.get(Sidecar.PATIENT, TimeUnit.SECONDS));
      awaitWaiters(views, 0);
      assertTrue(held.isValid());
    }
  }

  private static void awaitWaiters(Watch<LockView> views, int number) throws InterruptedException {
    while (views.take().waiters().size() != number) {
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCallerThatGivesUpWhileItIsGrantedTheLockDoesNotHaveIt(boolean ofLease)
      throws InterruptedException {
    LockOptions options = ofLease ? OPTIONS.lease(client.openLease(new LeaseOptions())) : OPTIONS;
    for (int i = 0; i < 20; i++) {
      CompletableFuture<Lock> granted = client.acquireAsync("orders", options);
      int spins = i * 50_000;
      for (int spin = 0; spin < spins; spin++) {
        Thread.onSpinWait();
      }
      if (!granted.cancel(true)) {
        granted.join().release(); // it was faster
      }
      client.acquire("orders", OPTIONS.waitTimeout(Duration.ofSeconds(5))).release();
    }
  }

  @Test
  void aKilledSidecarIsNoticedAtOnce() throws Exception {
    Lock lock = client.acquire("orders");
    CompletableFuture<Long> noticed = new CompletableFuture<>();
    lock.claim.whenOver(() -> noticed.complete(System.nanoTime()));
    long killed = System.nanoTime();
    sidecar.kill();
    double took = (noticed.get(Sidecar.PATIENT, TimeUnit.SECONDS) - killed) / 1e6;
    System.out.printf("the holder of a lock learns of a killed sidecar after %.1f ms%n", took);
    assertFalse(lock.isValid());
  }

  @Test
  void aRevocationIsToldAndEndsTheHoldWithItsGrace() throws Exception {
    List<String> told = new CopyOnWriteArrayList<>();
    LockListener listener =
        new LockListener() {
          @Override
          public void revocationRequested(Revocation revocation) {
            told.add(revocation.reason() + " " + revocation.grace().isPresent());
          }

          @Override
          public void lost(LockLostException lost) {
            told.add(lost.why().reason());
          }
        };
    Lock lock = client.acquire("orders", OPTIONS.listener(listener));
    assertEquals(1, client.revoke("orders", "maintenance", Duration.ofMillis(300)));
    Sidecar.until("it is told", () -> told.size() == 2);
    assertEquals(List.of("maintenance true", "LOCK_REVOKED"), told);
    assertEquals("LOCK_REVOKED", lock.error().orElseThrow().why().reason());
    assertTrue(lock.revocation().isPresent());
    assertThrows(LockLostException.class, lock::release);
    assertThrows(LockLostException.class, lock::close);
  }

  @Test
  void aListenerThatThrowsOrWaitsHarmsNobody() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    LockListener slow =
        new LockListener() {
          @Override
          public void queued(Queued queued) {
            try {
              assertEquals("", client.getLock("orders").holders().get(0).owner());
              never.await();
            } catch (InterruptedException interrupted) {
              Thread.currentThread().interrupt();
            }
          }
        };
    Lock first = client.acquire("orders");
    CompletableFuture<Lock> second = client.acquireAsync("orders", OPTIONS.listener(slow));
    first.release();
    second.get(Sidecar.PATIENT, TimeUnit.SECONDS).release();
    never.countDown();
  }

  @Test
  void threadsExcludeEachOther() throws InterruptedException {
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    List<Thread> threads = new java.util.ArrayList<>();
    for (int i = 0; i < 8; i++) {
      threads.add(
          new Thread(
              () -> {
                for (int round = 0; round < 5; round++) {
                  try (Lock lock = client.acquire("orders")) {
                    if (lock.isValid() && inside.incrementAndGet() == 1) {
                      done.incrementAndGet();
                    }
                    inside.decrementAndGet();
                  } catch (InterruptedException interrupted) {
                    return;
                  }
                }
              }));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    assertEquals(40, done.get());
  }

  @Test
  void threadsTakeTheirLocksOfOneLeaseAgainAndAgain() throws Exception {
    try (Lease lease = client.openLease(new LeaseOptions())) {
      List<CompletableFuture<Void>> threads = new java.util.ArrayList<>();
      for (int i = 0; i < 8; i++) {
        String name = "mine/" + i;
        threads.add(
            CompletableFuture.runAsync(
                () -> {
                  long token = 0;
                  for (int round = 0; round < 25; round++) {
                    Lock lock = client.acquireAsync(name, ONCE.lease(lease)).join();
                    assertTrue(lock.isValid() && lock.fencingToken() > token);
                    token = lock.fencingToken();
                    lock.release();
                  }
                },
                task -> new Thread(task).start()));
      }
      for (CompletableFuture<Void> thread : threads) {
        thread.get(Sidecar.PATIENT, TimeUnit.SECONDS);
      }
      lease.check();
    }
  }

  @Test
  void aLeaseServesOtherClients() throws Exception {
    try (Client other = new Client(sidecar.address);
        Lease lease = client.openLease(new LeaseOptions())) {
      Lock first = other.acquire("orders", ONCE.lease(lease));
      first.release();
      Lock second = other.acquire("orders", ONCE.lease(lease));
      assertTrue(second.isValid());
      sidecar.expire("orders");
      LostException lost =
          second.lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertEquals("LEASE_LOST", lost.why().reason());
    } catch (LostException expected) {
      assertEquals("lease", expected.what());
    }
  }

  @Test
  void manyLocksAreHeldAtTheSameTime() throws Exception {
    try (Lease lease = client.openLease(new LeaseOptions())) {
      List<CompletableFuture<Lock>> locks = new java.util.ArrayList<>();
      for (int i = 0; i < 500; i++) {
        locks.add(client.acquireAsync("many/" + i, OPTIONS.lease(lease)));
      }
      for (CompletableFuture<Lock> lock : locks) {
        assertTrue(lock.get(Sidecar.PATIENT, TimeUnit.SECONDS).isValid());
      }
      Sidecar.pause(4.5); // longer than a validity
      assertTrue(locks.stream().allMatch(lock -> lock.join().isValid()));
      sidecar.expire("many/0");
      Sidecar.until(
          "all are lost", () -> locks.stream().allMatch(l -> l.join().error().isPresent()));
      Sidecar.until("the lease is, too, which is told last", () -> lease.error().isPresent());
      assertThrows(LostException.class, lease::check);
    } catch (LostException expected) {
      assertEquals("lease", expected.what());
    }
  }

  @Test
  void aClientThatIsClosedSaysSo() throws Exception {
    Lock lock = client.acquire("orders");
    CompletableFuture<Lock> waiting = client.acquireAsync("orders", OPTIONS);
    Watch<LockView> views = client.watchLock("orders");
    client.close();
    client.close();
    assertFalse(lock.isValid());
    assertThrows(LockLostException.class, lock::check);
    Sidecar.until("it ends", waiting::isDone);
    assertThrows(
        SidekeeperException.class,
        () -> {
          while (views.hasNext()) views.take();
        });
    List<org.junit.jupiter.api.function.Executable> refused =
        List.of(
            () -> client.acquire("orders"),
            () -> client.openLease(new LeaseOptions()),
            () -> client.getLock("orders"),
            () -> client.join("a", "b", new JoinOptions()));
    for (var call : refused) {
      assertEquals(
          "the client is closed", assertThrows(SidekeeperException.class, call).getMessage());
    }
  }

  @Test
  void whoGivesUpWhileTheSidecarIsAwayGetsNothingLater() throws Exception {
    sidecar.kill();
    CompletableFuture<Lock> waiting = client.acquireAsync("orders", OPTIONS);
    CompletableFuture<Lease> opening = client.openLeaseAsync(new LeaseOptions());
    CompletableFuture<Membership> joining = client.joinAsync("a", "b", new JoinOptions());
    assertThrows(SidekeeperException.class, () -> client.acquire("orders", ONCE));
    for (var given : List.of(waiting, opening, joining)) {
      assertTrue(given.cancel(true));
    }
    sidecar.start();
    client.acquire("orders", OPTIONS.waitTimeout(Duration.ofSeconds(5))).release();
    assertTrue(client.getLock("orders").holders().isEmpty());
    assertTrue(client.getGroup("a").members().isEmpty());
  }

  @Test
  void aClientThatIsClosedWhileTheSidecarIsAwaySaysSoAtOnce() {
    sidecar.kill();
    List<CompletableFuture<? extends Held>> waiting =
        List.of(
            client.acquireAsync("orders", OPTIONS),
            client.openLeaseAsync(new LeaseOptions()),
            client.joinAsync("a", "b", new JoinOptions()));
    assertThrows(SidekeeperException.class, () -> client.acquire("orders", ONCE));
    client.close();
    for (var each : waiting) {
      Sidecar.until("it ends", 1, each::isDone);
      assertEquals("the client is closed", Stage.failureOf(each).getMessage());
    }
  }

  @Test
  void aClientThatIsClosedLeavesNoThread() throws InterruptedException {
    client.acquire("orders");
    client.close();
    Sidecar.until(
        "its threads end",
        () ->
            Thread.getAllStackTraces().keySet().stream()
                .noneMatch(
                    thread ->
                        thread.getName().startsWith("sidekeeper-io")
                            || thread.getName().startsWith("sidekeeper-timer")));
  }

  @Test
  void tcpAndPlainPathsReachTheSameSidecar() throws Exception {
    try (Client overTcp = sidecar.clientOverTcp();
        Client overPath = new Client(sidecar.address.substring("unix://".length()));
        Lock lock = overTcp.acquire("orders")) {
      assertTrue(lock.isValid());
      assertThrows(LockHeldException.class, () -> overPath.acquire("orders", ONCE));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"unix:///nowhere/s.sock", "/nowhere/s.sock", "127.0.0.1:1"})
  void aSidecarThatIsNotThereIsNamed(String address) {
    try (Client lonely = new Client(address)) {
      SidekeeperException refused =
          assertThrows(SidekeeperException.class, () -> lonely.acquire("orders", ONCE));
      assertEquals(Status.Code.UNAVAILABLE, refused.code());
      String said = refused.getMessage();
      assertTrue(said.startsWith("the sidecar is not reachable (" + address + ": "), said);
      assertTrue(said.contains(address.startsWith("127") ? "refused" : "No such file"), said);
      assertTrue(said.contains("see that it runs, that SIDEKEEPER_ADDRESS is its address"), said);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"nonsense", "host:", "host:port", ":", "localhost:65536", "http://localhost:7181"})
  void anAddressThatIsNoneIsRefused(String address) {
    IllegalArgumentException refused =
        assertThrows(IllegalArgumentException.class, () -> new Client(address));
    assertEquals(
        "sidecar address \"" + address + "\" is neither unix:///path, a path nor host:port",
        refused.getMessage());
  }

  @Test
  void anotherMachineIsReachedWithCredentialsOnly() {
    IllegalArgumentException refused =
        assertThrows(IllegalArgumentException.class, () -> new Client("example.org:7181"));
    assertTrue(refused.getMessage().contains("needs credentials"));
  }
}
