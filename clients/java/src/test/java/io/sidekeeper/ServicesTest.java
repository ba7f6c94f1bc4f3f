package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.PreconditionFailedException;
import io.sidekeeper.errors.SidekeeperException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PrimitiveIterator;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the scenarios do not tell of elections, sequences, membership and configuration. */
@Timeout(60)
class ServicesTest {
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

  @Test
  void aLeaderLeadsAgainAfterALoss() throws InterruptedException {
    Set<Long> tokens = new HashSet<>();
    Body<String, RuntimeException> lead =
        lock -> {
          tokens.add(lock.fencingToken());
          if (tokens.size() == 1) {
            sidecar.expire("leader");
            Thread.sleep(60_000);
          }
          return "done";
        };
    assertEquals("done", client.runWhileLeader("leader", new LockOptions(), lead));
    assertEquals(2, tokens.size());
  }

  @Test
  void aLeaderThatFailsBeforeAnyLossFails() {
    Body<String, IllegalStateException> failing =
        lock -> {
          throw new IllegalStateException("mine");
        };
    assertThrows(
        IllegalStateException.class,
        () -> client.runWhileLeader("leader", new LockOptions(), failing));
  }

  @Test
  void numbersAreTakenAhead() throws InterruptedException {
    Sequence ids = client.sequence("ids");
    long incarnation = ids.create(Long.MAX_VALUE - 100);
    PrimitiveIterator.OfLong numbers = ids.numbers(7);
    Set<Long> taken = new HashSet<>();
    for (int i = 0; i < 20; i++) {
      taken.add(numbers.nextLong());
    }
    assertEquals(20, taken.size());
    assertEquals(incarnation, ids.get().incarnation());
    assertEquals(3, ids.nextRange(3).stream().count());
    assertTrue(ids.nextAsync().join() > 0);
    Thread.currentThread().interrupt();
    assertThrows(
        CancellationException.class,
        () -> {
          while (true) {
            numbers.nextLong();
          }
        });
    assertTrue(Thread.interrupted());
    ids.delete();
  }

  @Test
  void membersAreWatchedAndPicked() throws InterruptedException {
    try (Watch<GroupView> views = client.watchGroup("workers")) {
      assertEquals(List.of(), views.next().members());
      Map<String, String> address = Map.of("address", "10.0.0.1:80");
      try (Membership a = client.join("workers", "a", new JoinOptions().metadata(address));
          Membership b = client.joinAsync("workers", "b", new JoinOptions()).join()) {
        GroupView both = views.take();
        while (both.members().size() < 2) {
          both = views.take();
        }
        assertEquals(a.incarnation(), both.member("a").orElseThrow().incarnation());
        assertEquals(address, both.member("a").orElseThrow().metadata());
        assertTrue(b.isValid());
        b.update(Map.of("weight", "2"));
        assertEquals(
            Map.of("weight", "2"), client.getGroup("workers").member("b").orElseThrow().metadata());
        assertEquals(
            client.getGroup("workers").pick("customer-7").orElseThrow().member(),
            both.pick("customer-7").orElseThrow().member());
      }
    }
    assertTrue(client.getGroup("workers").pick("customer-7").isEmpty());
  }

  private static GroupView group(int size) {
    List<GroupMember> members =
        java.util.stream.IntStream.range(0, size)
            .mapToObj(i -> new GroupMember("m" + i, i, "", Map.of(), Duration.ZERO, false, "", ""))
            .toList();
    return new GroupView("g", members, 0, false);
  }

  @Test
  void aMemberThatComesTakesOnlyItsOwnKeys() {
    Map<String, Integer> shares = new HashMap<>();
    for (int i = 0; i < 4000; i++) {
      String key = "key-" + i;
      String before = group(4).pick(key).orElseThrow().member();
      String after = group(5).pick(key).orElseThrow().member();
      assertTrue(after.equals(before) || after.equals("m4"), key);
      shares.merge(after, 1, Integer::sum);
    }
    assertTrue(
        shares.values().stream().allMatch(share -> share > 600 && share < 1000), shares::toString);
    assertEquals(
        "m1", group(4).pick("customer-7").orElseThrow().member()); // what other languages must pick
  }

  @Test
  void aMemberThatWasReplacedDoesNotJoinAgain() throws InterruptedException {
    StayingMember staying = client.stayJoined("workers", "a", new JoinOptions(), joined -> {});
    JoinOptions replace = new JoinOptions().onConflict(OnConflict.REPLACE);
    try (Membership other = client.join("workers", "a", replace)) {
      CompletableFuture<Void> ended = staying.ended().toCompletableFuture();
      Sidecar.until("it ends", ended::isDone);
      LostException lost = (LostException) Stage.failureOf(ended);
      assertEquals("MEMBER_REPLACED", lost.why().reason());
      assertTrue(other.isValid());
    }
    staying.close();
  }

  @Test
  void aViewFollowsAndSaysHowOldItIs() throws InterruptedException {
    client.config().put("app/colour", "red");
    try (ConfigView view = client.config().view("app")) {
      assertEquals("red", view.get("app/colour").orElseThrow().text());
      assertTrue(view.age().isZero());
      client.config().put("app/colour", "blue", Precondition.exists());
      Sidecar.until("it follows", () -> view.get("app/colour").orElseThrow().text().equals("blue"));
      sidecar.kill();
      Sidecar.until("it grows old", () -> !view.age().isZero());
      assertEquals(1, view.entries().size());
      assertTrue(view.error().isEmpty());
      sidecar.start(); // with an ensemble that is empty
      Sidecar.until("it follows again", () -> view.age().isZero());
      assertTrue(view.entries().isEmpty());
    }
  }

  @Test
  void aViewOfWhatCannotBeIsRefused() {
    SidekeeperException refused =
        assertThrows(SidekeeperException.class, () -> client.config().view("a//b"));
    assertEquals("INVALID_FIELD", refused.reason());
  }

  @Test
  void commitsHappenAsAWholeOrNotAtAll() throws InterruptedException {
    byte[] value = "1".getBytes(StandardCharsets.UTF_8);
    List<Entry> done =
        client
            .config()
            .commit(new Commit().put("a", value, Precondition.missing()).put("b", value, null));
    assertEquals(List.of("a", "b"), done.stream().map(Entry::key).toList());
    PreconditionFailedException refused =
        assertThrows(
            PreconditionFailedException.class,
            () ->
                client
                    .config()
                    .commit(new Commit().delete("b", null).check("a", Precondition.version(7))));
    assertEquals("1", refused.metadata().get("operation"));
    assertEquals(2, client.config().list("").size());
    assertEquals("1", client.config().getAsync("b").join().text());
  }

  @Test
  void aWatchOfSomeKeysEndsWhenItIsClosed() throws InterruptedException {
    client.config().put("a", "1");
    Watch<ConfigEvent> watch = client.config().watch(List.of("a"));
    assertEquals("1", watch.next().changes().get(0).entry().text());
    CompletableFuture<Void> done = watch.listen(event -> {});
    watch.close();
    Sidecar.until("it ends", done::isDone);
    assertFalse(done.isCompletedExceptionally());
    assertFalse(watch.hasNext());
  }
}
