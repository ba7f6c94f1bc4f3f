package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SuspendedException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Several locks at once. */
@Timeout(60)
@SuppressWarnings("try") // a scope is closed, and nothing else
class SeveralTest {
  private static final LocksOptions PLAIN = new LocksOptions();
  private static final LocksOptions ONCE = PLAIN.waitTimeout(Duration.ZERO);
  private static final List<WantedLock> ACCOUNTS =
      List.of(new WantedLock("accounts/7"), new WantedLock("accounts/9", Mode.READ));
  private static final long PATIENTLY = TimeUnit.SECONDS.toNanos(Sidecar.PATIENT);

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

  private static List<WantedLock> named(String... names) {
    return List.of(names).stream().map(WantedLock::new).toList();
  }

  private static void assertBroken(Locks held) {
    Sidecar.until("they are lost", () -> held.error().isPresent());
    assertEquals("LOCK_BROKEN", held.error().orElseThrow().why().reason());
  }

  private String balance() throws InterruptedException {
    return client.config().get("balance").text();
  }

  @Test
  void severalLocksAreOneHold() throws Exception {
    Locks held = client.acquireAll(ACCOUNTS, PLAIN.owner("transfer"));
    assertTrue(held.isValid());
    assertEquals(List.of("accounts/7", "accounts/9"), held.names());
    assertEquals(new Ticket("accounts/7", held.fencingToken("accounts/7")), held.tickets().get(0));
    assertEquals(0, held.fencingToken("accounts/8"));
    Contender holder = client.getLock("accounts/9").holders().get(0);
    assertEquals(Mode.READ, holder.mode());
    assertEquals("transfer", holder.owner());
    LockOptions once = new LockOptions().waitTimeout(Duration.ZERO);
    assertThrows(LockHeldException.class, () -> client.acquire("accounts/7", once));
    List<WantedLock> others = named("accounts/8", "accounts/7");
    assertThrows(LockHeldException.class, () -> client.acquireAll(others, ONCE));
    LocksOptions soon = PLAIN.waitTimeout(Duration.ofMillis(100));
    assertThrows(WaitTimeoutException.class, () -> client.acquireAll(others, soon));
    List<WantedLock> twice = named("accounts/8", "accounts/8");
    SidekeeperException refused =
        assertThrows(SidekeeperException.class, () -> client.acquireAll(twice, PLAIN));
    assertEquals("INVALID_FIELD", refused.reason());
    Lock reader = client.acquire("accounts/9", once.mode(Mode.READ));
    held.release();
    held.releaseAsync().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertFalse(held.isValid());
    assertTrue(held.error().isEmpty());
    try (Locks again = client.acquireAll(others, ONCE)) {
      assertTrue(again.fencingToken("accounts/7") > held.fencingToken("accounts/7"));
    }
    reader.close();
  }

  @Test
  void whoWaitsForSeveralLocksIsToldForWhichAndLeavesAllQueues() throws Exception {
    Lock first = client.acquire("accounts/9", new LockOptions().mode(Mode.WRITE));
    LinkedBlockingQueue<Map<String, Integer>> told = new LinkedBlockingQueue<>();
    LocksListener listener =
        new LocksListener() {
          @Override
          public void queued(Map<String, Integer> ahead) {
            told.add(ahead);
          }
        };
    CompletableFuture<Locks> waiting = client.acquireAllAsync(ACCOUNTS, PLAIN.listener(listener));
    assertEquals(Map.of("accounts/9", 1), told.poll(Sidecar.PATIENT, TimeUnit.SECONDS));
    waiting.cancel(true);
    try (Watch<LockView> watch = client.watchLock("accounts/7")) {
      LockView view = watch.next();
      while (!view.holders().isEmpty() || !view.waiters().isEmpty()) {
        view = watch.next();
      }
    }
    CompletableFuture<Locks> second = client.acquireAllAsync(ACCOUNTS, PLAIN);
    first.release();
    second.get(Sidecar.PATIENT, TimeUnit.SECONDS).close();
  }

  @Test
  void whoAsksForOneOfSeveralLocksAsksForAllAndALossIsTold() throws Exception {
    CompletableFuture<Revocation> asked = new CompletableFuture<>();
    CompletableFuture<LockLostException> told = new CompletableFuture<>();
    LocksListener listener =
        new LocksListener() {
          @Override
          public void revocationRequested(Revocation revocation) {
            asked.complete(revocation);
          }

          @Override
          public void lost(LockLostException lost) {
            told.complete(lost);
          }
        };
    Locks held = client.acquireAll(ACCOUNTS, PLAIN.listener(listener));
    assertEquals(1, client.revoke("accounts/9", "audit", null));
    assertEquals("audit", asked.get(Sidecar.PATIENT, TimeUnit.SECONDS).reason());
    assertTrue(held.revocation().isPresent());
    assertTrue(client.getLock("accounts/9").holders().get(0).revocationRequested());
    sidecar.expire("accounts/9");
    assertEquals(
        "locks accounts/7, accounts/9", told.get(Sidecar.PATIENT, TimeUnit.SECONDS).what());
    assertThrows(LostException.class, held::close);
  }

  @Test
  void severalLocksOnALeaseEndWithIt() throws Exception {
    Lease lease = client.openLease(new LeaseOptions());
    Locks held = client.acquireAll(ACCOUNTS, PLAIN.lease(lease));
    LockOptions onLease = new LockOptions().lease(lease);
    SidekeeperException refused =
        assertThrows(SidekeeperException.class, () -> client.acquire("accounts/7", onLease));
    assertEquals("ALREADY_CONTENDING", refused.reason());
    sidecar.breakFirst("accounts/9", PATIENTLY);
    assertBroken(held);
    assertTrue(lease.isValid());
    Locks again = client.acquireAll(ACCOUNTS, PLAIN.lease(lease));
    lease.close();
    Sidecar.until("they are lost", () -> again.error().isPresent());
    assertThrows(LostException.class, again::release);
  }

  @Test
  void overTcpSeveralLocksAreOneCall() throws Exception {
    try (Client distant = sidecar.clientOverTcp()) {
      Locks held = distant.acquireAll(ACCOUNTS, PLAIN);
      assertTrue(held.isValid());
      sidecar.breakFirst("accounts/7", PATIENTLY);
      assertBroken(held);
      assertTrue(distant.withLocks(ACCOUNTS, PLAIN, Locks::isValid));
      assertTrue(distant.getLock("accounts/7").holders().isEmpty());
    }
  }

  @Test
  void aBodyIsGuardedByAllItsLocksAndStoppedWhenTheyAreLost() throws Exception {
    Locks held =
        client.withLocks(
            ACCOUNTS,
            PLAIN,
            locks -> {
              client.config().put("balance", "held");
              // Readers do not exclude each other.
              assertEquals(locks.tickets().subList(0, 1), GuardScope.tickets());
              return locks;
            });
    try (GuardScope late = held.guard()) {
      assertThrows(GuardLostException.class, () -> client.config().put("balance", "late"));
    }
    assertThrows(
        LockLostException.class,
        () ->
            client.withLocks(
                ACCOUNTS,
                PLAIN,
                locks -> {
                  sidecar.expire("accounts/9");
                  Thread.sleep(PATIENTLY / 1_000_000);
                  return null;
                }));
    CompletableFuture<Void> never = new CompletableFuture<>();
    CompletableFuture<Void> running =
        client.withLocksAsync(
            ACCOUNTS,
            PLAIN.suspensionGrace(Duration.ofMillis(1)),
            locks -> {
              sidecar.suspend(2);
              return never;
            });
    Throwable stopped =
        assertThrows(Exception.class, () -> running.get(Sidecar.PATIENT, TimeUnit.SECONDS));
    assertTrue(stopped.getCause() instanceof SuspendedException, stopped.toString());
    assertEquals("held", balance());
  }
}
