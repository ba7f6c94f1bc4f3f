package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import io.sidekeeper.fencing.v1.WatchResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Writes that are carried out only while a lock is held. */
@Timeout(60)
@SuppressWarnings("try") // a scope has no other use than its end
class GuardsTest {
  private static final LockOptions OPTIONS = new LockOptions();

  private Sidecar sidecar;
  private Client client;
  private Client other;

  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
    other = new Client(sidecar.address);
  }

  @AfterEach
  void disconnect() {
    other.close();
    client.close();
    sidecar.close();
  }

  private void assertState(String text) throws InterruptedException {
    assertEquals(text, client.config().getLinearizable("state").text());
  }

  private static GuardLostException assertRefused(Lock lock, Executable write) {
    GuardLostException refused = assertThrows(GuardLostException.class, write);
    assertEquals(Long.toString(lock.fencingToken()), refused.metadata().get("fencing_token"));
    return refused;
  }

  @Test
  void whatIsWrittenAfterTheLossIsRefused() throws Exception {
    Config config = client.config();
    Sequence ids = client.sequence("ids");
    ids.create(1);
    config.put("old", "1");
    Lock lock = client.acquire("orders");
    try (GuardScope guarded = lock.guard()) {
      config.put("state", "held");
      assertEquals(1, ids.next());
      Membership member = client.join("web", "web-1", new JoinOptions());
      member.update(Map.of("port", "80"));
      sidecar.expire("orders");
      assertTrue(lock.lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS) != null);
      byte[] late = "late".getBytes(StandardCharsets.UTF_8);
      assertRefused(lock, () -> config.put("state", "late"));
      assertRefused(lock, () -> config.commit(new Commit().put("state", late, null)));
      assertRefused(lock, () -> config.delete("old"));
      assertRefused(lock, ids::next);
      assertRefused(lock, () -> client.join("web", "web-2", new JoinOptions()));
      assertRefused(lock, () -> member.update(Map.of("port", "81")));
      assertEquals(2, ids.nextRelaxedRange(1).first());
      try (GuardScope none = GuardScope.unguarded()) {
        config.put("other", "unguarded");
        member.update(Map.of("port", "82"));
      }
      member.leave();
      assertRefused(lock, () -> config.put("state", "late"));
    }
    assertState("held");
    config.put("state", "after");
  }

  @Test
  void aLostLockIsKeptFromOthersForItsDelay() throws Exception {
    client.acquire("orders", OPTIONS.lockDelay(Duration.ofMinutes(1))).release();
    Lock lost = client.acquire("orders", OPTIONS.lockDelay(Duration.ofMillis(500)));
    sidecar.expire("orders");
    assertTrue(lost.lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS) != null);
    long began = System.nanoTime();
    other.acquire("orders").release();
    assertTrue(System.nanoTime() - began >= 400_000_000);
  }

  @Test
  void theBodyOfALockIsGuardedByItAndByAllAroundIt() throws InterruptedException {
    Config config = client.config();
    client.withLock(
        "outer",
        OPTIONS,
        outer -> {
          client.withLock(
              "inner",
              OPTIONS,
              inner -> {
                config.put("state", "both");
                outer.release();
                assertRefused(outer, () -> config.put("state", "late"));
                return null;
              });
          assertRefused(outer, () -> config.put("state", "late"));
          return null;
        });
    assertState("both");
    config.put("state", "neither");
  }

  @Test
  void aBodyThatGivesAStageIsGuardedUntilItGivesIt() throws Exception {
    CompletableFuture<String> held =
        client.withLockAsync(
            "orders",
            OPTIONS,
            lock -> {
              lock.release();
              assertRefused(lock, () -> client.config().put("state", "late"));
              return CompletableFuture.completedFuture("done");
            });
    assertEquals("done", held.get(Sidecar.PATIENT, TimeUnit.SECONDS));
    CompletableFuture<Void> after =
        client.acquireAsync("orders", OPTIONS).thenAccept(Lock::releaseAsync);
    after.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    client.config().put("state", "after");
  }

  @Test
  void aTicketGuardsWhatOthersWriteForTheHolder() throws InterruptedException {
    Ticket ticket =
        client.withLock(
            "orders",
            OPTIONS,
            lock -> {
              try (GuardScope guarded = lock.ticket().guard()) {
                other.config().put("state", "for the holder");
              }
              lock.release();
              other.config().put("state", "of its own"); // a hold is no guard of another client's
              return lock.ticket();
            });
    try (GuardScope guarded = ticket.guard()) {
      GuardLostException refused =
          assertThrows(GuardLostException.class, () -> other.config().put("state", "late"));
      assertEquals("orders", refused.metadata().get("lock"));
    }
    try (GuardScope guarded = new Ticket("orders", 0).guard()) {
      SidekeeperException refused =
          assertThrows(SidekeeperException.class, () -> other.config().put("state", "late"));
      assertEquals("INVALID_FIELD", refused.reason());
    }
    assertState("of its own");
  }

  @Test
  void aLeaderWhoseWriteMeetsTheLossFirstLeadsAgain() throws InterruptedException {
    List<Long> tokens = new ArrayList<>();
    Body<String, RuntimeException> lead =
        lock -> {
          tokens.add(lock.fencingToken());
          if (tokens.size() == 1) {
            Map<String, String> metadata = Map.of("fencing_token", tokens.get(0).toString());
            throw new GuardLostException(
                Status.Code.FAILED_PRECONDITION, new Told("lost", metadata, List.of()));
          }
          client.config().put("leader", tokens.get(1).toString());
          return "led";
        };
    assertEquals("led", client.runWhileLeader("scheduler", OPTIONS, lead));
    assertEquals(2, tokens.size());
  }

  @Test
  void aBodyThatWritesAfterItHasReleasedItsLockMeetsTheRefusal() {
    Body<Entry, RuntimeException> lead =
        lock -> {
          lock.release();
          return client.config().put("state", "late");
        };
    GuardLostException refused =
        assertThrows(
            GuardLostException.class, () -> client.runWhileLeader("scheduler", OPTIONS, lead));
    assertArrayEquals(new Throwable[0], refused.getSuppressed());
  }

  @Test
  void anotherThreadGuardsItself() throws Exception {
    Config config = client.config();
    List<String> seen = new ArrayList<>();
    client.withLock(
        "orders",
        OPTIONS,
        lock -> {
          lock.release();
          Thread unaware = new Thread(() -> seen.add(written(config)));
          unaware.start();
          unaware.join();
          Thread aware =
              new Thread(
                  () -> {
                    try (GuardScope guarded = lock.guard()) {
                      seen.add(written(config));
                    }
                  });
          aware.start();
          aware.join();
          return null;
        });
    assertEquals(List.of("written", "refused"), seen);
  }

  private static String written(Config config) {
    try {
      config.put("thread", "written");
      return "written";
    } catch (GuardLostException refused) {
      return "refused";
    } catch (InterruptedException interrupted) {
      return "interrupted";
    }
  }

  @Test
  void theLateWriteOfAnEarlierHolderIsRefused() throws InterruptedException, ExecutionException {
    Config config = client.config();
    Lock first = client.acquire("orders");
    try (GuardScope guarded = first.guard()) {
      config.put("state", "first");
    }
    sidecar.expire("orders");
    other.withLock(
        "orders",
        OPTIONS,
        second -> {
          other.config().put("state", "second");
          try (GuardScope guarded = first.guard()) {
            assertRefused(first, () -> config.put("state", "late"));
          }
          try (GuardScope guarded = first.ticket().guard()) {
            GuardLostException refused = assertRefused(first, () -> config.put("state", "late"));
            String current = refused.metadata().get("current_token");
            assertEquals(Long.toString(second.fencingToken()), current);
          }
          assertState("second");
          return null;
        });
  }

  @Test
  void aTicketIsVerified() throws InterruptedException {
    Lock lock = client.acquire("orders", OPTIONS);
    Ticket ticket = lock.ticket();
    assertEquals(new Verification(true, lock.fencingToken()), other.verify(ticket));
    lock.close();
    assertEquals(new Verification(false, 0), other.verify(ticket));
  }

  @Test
  void currentTokensAreWatched() throws InterruptedException {
    try (Watch<List<CurrentToken>> tokens = other.watchTokens("orders")) {
      assertEquals(List.of(new CurrentToken("orders", 0, false)), tokens.next());
      try (Lock lock = client.acquire("orders", OPTIONS)) {
        assertEquals(
            List.of(new CurrentToken("orders", lock.fencingToken(), false)), tokens.next());
      }
      assertEquals(List.of(new CurrentToken("orders", 0, false)), tokens.next());
    }
  }

  @Test
  void noSmallerTokenIsToldAfterALargerOne() {
    TokenChanges changes = new TokenChanges();
    assertEquals(List.of(new CurrentToken("a", 5, false)), changes.of(token(5)));
    assertEquals(List.of(new CurrentToken("a", 5, true)), changes.of(null));
    assertEquals(null, changes.of(token(3))); // of a new stream, by a server that is behind
    assertEquals(List.of(new CurrentToken("a", 0, false)), changes.of(token(0)));
    assertEquals(List.of(new CurrentToken("a", 0, true)), changes.of(token(3)));
    assertEquals(List.of(new CurrentToken("a", 7, false)), changes.of(token(7)));
  }

  private static WatchResponse token(long token) {
    return WatchResponse.newBuilder()
        .addTokens(
            io.sidekeeper.fencing.v1.CurrentToken.newBuilder().setLock("a").setFencingToken(token))
        .build();
  }
}
