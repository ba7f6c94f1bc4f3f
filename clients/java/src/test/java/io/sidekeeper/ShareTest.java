package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.AssignmentNotFoundException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Work that is shared out among the members of a set. */
@Timeout(90)
class ShareTest {
  private static final ShareOptions ONE = new ShareOptions().member("one");
  private static final ShareOptions TWO = new ShareOptions().member("two");

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
    client.close();
    other.close();
    sidecar.close();
  }

  /** Where handlers work, each until it is told to stop. No item is worked on by two at once. */
  private static final class Floor {
    private final Map<String, String> working = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> runs = new ConcurrentHashMap<>();
    private final List<String> twice = Collections.synchronizedList(new ArrayList<>());
    private final CountDownLatch never = new CountDownLatch(1);
    private volatile CountDownLatch late = new CountDownLatch(0);

    ItemHandler handler(String member) {
      return item -> {
        if (working.putIfAbsent(item.name(), member) != null) {
          twice.add(item.name());
        }
        runs.computeIfAbsent(item.name(), name -> new AtomicInteger()).incrementAndGet();
        try {
          never.await();
        } catch (InterruptedException stopped) {
          assertTrue(item.shouldStop());
          Waiting.awaitAnyway(CompletableFuture.runAsync(() -> await(late)));
          throw stopped;
        } finally {
          working.remove(item.name());
        }
      };
    }

    private static void await(CountDownLatch latch) {
      try {
        assertTrue(latch.await(Sidecar.PATIENT, TimeUnit.SECONDS));
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
    }

    String of(String member) {
      TreeSet<String> items = new TreeSet<>();
      working.forEach(
          (item, by) -> {
            if (by.equals(member)) {
              items.add(item);
            }
          });
      return String.join(" ", items);
    }

    void works(String member, String items) {
      Sidecar.until(member + " works on " + items, () -> of(member).equals(items));
      assertEquals(List.of(), twice);
    }

    void hasRun(String item, int times) {
      Sidecar.until(
          item + " has begun " + times + " times",
          () -> runs.containsKey(item) && runs.get(item).get() == times);
    }
  }

  @Test
  void itemsMoveToAnotherMemberAndBackWhenTheirHandlersHaveEnded() throws Exception {
    sidecar.sets.define("orders", "a", "b", "c", "d");
    Floor floor = new Floor();
    List<Assignment> told = Collections.synchronizedList(new ArrayList<>());
    ShareListener listener =
        new ShareListener() {
          @Override
          public void assigned(Assignment assignment) {
            told.add(assignment);
          }
        };
    Share one = client.share("orders", ONE, floor.handler("one"));
    floor.works("one", "a b c d");
    floor.late = new CountDownLatch(1);
    try (Share two = other.share("orders", TWO.listener(listener), floor.handler("two"))) {
      Sidecar.until(
          "some move", () -> !told.isEmpty() && told.get(told.size() - 1).items().size() == 2);
      Assignment last = told.get(told.size() - 1);
      assertEquals("2 4 0", last.members() + " " + last.total() + " " + last.unassigned());
      String moved = "orders/" + last.items().get(0);
      try (Watch<LockView> views = other.watchLock(moved)) {
        LockView view = views.next();
        while (view.waiters().isEmpty()) {
          view = views.next();
        }
        assertEquals("one", view.holders().get(0).metadata().get("member"));
        assertEquals("two", view.waiters().get(0).metadata().get("member"));
      }
      floor.works("one", "a b c d"); // those that move were told to stop, and have not ended
      floor.late.countDown();
      floor.works("two", String.join(" ", last.items()));
      one.close();
      assertEquals("", floor.of("one"));
      assertTrue(one.ended().toCompletableFuture().isDone());
      floor.works("two", "a b c d");
      assertFalse(two.ended().toCompletableFuture().isDone());
    }
    assertEquals("", floor.of("two"));
  }

  @Test
  void aMemberThatDrainsHasItsItemsMoveFirst() {
    sidecar.sets.define("orders", "a", "b");
    Floor floor = new Floor();
    Share one = client.share("orders", ONE.drain(true), floor.handler("one"));
    try (Share two = other.share("orders", TWO, floor.handler("two"))) {
      Sidecar.until("both work", () -> floor.working.size() == 2 && floor.of("one").length() == 1);
      one.close();
      floor.works("two", "a b");
      assertFalse(two.ended().toCompletableFuture().isDone());
    }
    Share late =
        client.share("orders", ONE.drain(true).drainTimeout(Duration.ZERO), floor.handler("one"));
    floor.works("one", "a b");
    late.close();
    floor.works("one", "");
  }

  @Test
  void aHandlerThatFailsOrReturnsIsRunAgain() {
    sidecar.sets.define("orders", "a", "b");
    List<String> failed = Collections.synchronizedList(new ArrayList<>());
    ShareListener listener =
        new ShareListener() {
          @Override
          public void failed(String item, Throwable failure) {
            failed.add(item + " " + failure);
          }
        };
    AtomicInteger returned = new AtomicInteger();
    ItemHandler handler =
        item -> {
          if (item.name().equals("a")) {
            throw new IOException("no disk");
          }
          assertEquals("orders orders/b", item.set() + " " + item.lock().name());
          assertFalse(item.shouldStop());
          assertEquals(List.of(item.lock().ticket()), GuardScope.tickets());
          client.config().put("made", "x");
          returned.incrementAndGet();
        };
    try (Share share = client.share("orders", ONE.listener(listener), handler)) {
      Sidecar.until("they run twice", () -> returned.get() == 2 && failed.size() == 2);
      assertFalse(share.ended().toCompletableFuture().isDone());
    }
    assertEquals(Collections.nCopies(2, "a java.io.IOException: no disk"), failed);
  }

  @Test
  void whatHasItsLockBrokenOrRevokedIsToldToStop() throws Exception {
    sidecar.sets.define("orders", "a");
    Floor floor = new Floor();
    try (Share share = client.share("orders", ONE, floor.handler("one"))) {
      floor.hasRun("a", 1);
      sidecar.breakFirst("orders/a", TimeUnit.SECONDS.toNanos(Sidecar.PATIENT));
      floor.hasRun("a", 2);
      assertEquals(1, client.revoke("orders/a", "wanted", null));
      floor.hasRun("a", 3);
      sidecar.sets.define("orders", "b");
      floor.works("one", "b");
      assertFalse(share.ended().toCompletableFuture().isDone());
    }
    assertEquals(List.of(), floor.twice);
  }

  @Test
  void aLostLeaseBeginsAnewWhenTheHandlersHaveEnded() throws Exception {
    sidecar.sets.define("orders", "a");
    Floor floor = new Floor();
    Share share = client.share("orders", ONE, floor.handler("one"));
    floor.hasRun("a", 1);
    floor.late = new CountDownLatch(1);
    sidecar.expire("orders/a");
    try (Lock lock = other.acquire("orders/a")) { // it is lost, though its handler goes on
      assertTrue(lock.isValid());
      floor.works("one", "a");
    }
    floor.late.countDown();
    floor.hasRun("a", 2);
    assertEquals(List.of(), floor.twice);
    sidecar.kill();
    floor.works("one", "");
    sidecar.start(); // with an ensemble that has no such set
    assertThrows(AssignmentNotFoundException.class, share::await);
    share.close();
  }

  @Test
  void whatEndsAShareIsTold() throws Exception {
    ItemHandler none = item -> {};
    assertThrows(AssignmentNotFoundException.class, client.share("orders", ONE, none)::await);
    sidecar.sets.define("orders", "a");
    SidekeeperException refused =
        assertThrows(
            SidekeeperException.class, client.share("orders", ONE.member("a/b"), none)::await);
    assertEquals("INVALID_FIELD", refused.reason());
    assertThrows(
        SidekeeperException.class, client.share("orders", ONE.capacity(3_000), none)::await);
    Floor floor = new Floor();
    try (Lease lease = client.openLease(new LeaseOptions())) {
      Share share = client.share("orders", ONE.lease(lease), floor.handler("one"));
      floor.works("one", "a");
      lease.closeAsync().get(Sidecar.PATIENT, TimeUnit.SECONDS);
      LostException lost = assertThrows(LostException.class, share::await);
      assertEquals("LEASE_CLOSED", lost.why().reason());
      assertEquals("", floor.of("one"));
      assertThrows(
          IllegalArgumentException.class, () -> other.share("orders", ONE.lease(lease), none));
    }
    Share last = client.share("orders", ONE, floor.handler("one"));
    floor.works("one", "a");
    client.close();
    assertInstanceOf(LostException.class, assertThrows(LostException.class, last::await));
    assertEquals("", floor.of("one"));
  }

  @Test
  void aPauseIsTwiceAsLongAsTheOneBefore() {
    Share.Pauses pauses = new Share.Pauses();
    IntUnaryOperator after = seconds -> (int) pauses.after(TimeUnit.SECONDS.toNanos(seconds));
    assertEquals(
        List.of(1, 2, 4, 8, 16, 32, 60, 60, 1, 2, 1, 2),
        IntStream.of(0, 0, 0, 0, 0, 0, 0, 0, 60, 59, 61, 0).map(after).boxed().toList());
  }

  @Test
  void whatShareIsGivenIsCheckedBeforeAnythingIsSent() {
    ItemHandler none = item -> {};
    assertThrows(NullPointerException.class, () -> client.share(null, ONE, none));
    assertThrows(NullPointerException.class, () -> client.share("orders", null, none));
    assertThrows(NullPointerException.class, () -> client.share("orders", ONE, null));
    assertThrows(IllegalArgumentException.class, () -> ONE.drainTimeout(Duration.ofDays(-1)));
  }
}
