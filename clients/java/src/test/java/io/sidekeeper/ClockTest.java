package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** What validity is counted on. */
@Timeout(60)
class ClockTest {
  private static final long SECOND = 1_000_000_000;

  @AfterEach
  void countOnTheSystem() {
    Clock.count(null);
  }

  /** A clock on a machine that was suspended for so long. */
  private static Clock.Reading suspendedFor(AtomicLong slept) {
    return () -> {
      Clock.Instant instant = Clock.ofSystem().read();
      return new Clock.Instant(instant.shown() + slept.get(), instant.behind());
    };
  }

  private static Uptime telling(String... lines) {
    Queue<String> left = new ArrayDeque<>(List.of(lines));
    return new Uptime(left::remove);
  }

  @Test
  void anUptimeInHundredthsIsBehindByOne() throws IOException {
    Uptime uptime = telling("12.34 5.67\n", "13.00 5.67\n");
    assertEquals(new Clock.Instant(12_340_000_000L, SECOND / 100), uptime.read());
    assertEquals(new Clock.Instant(13 * SECOND, SECOND / 100), uptime.read());
  }

  @Test
  void anUptimeInWholeSecondsIsBehindByOne() throws IOException {
    Uptime uptime = telling("12.00 0.00\n", "13.0 0.0\n", "14.00 0.00\n");
    for (int second = 12; second <= 14; second++) {
      assertEquals(new Clock.Instant(second * SECOND, SECOND), uptime.read());
    }
  }

  @Test
  void anUptimeIsAsCoarseAsTheFinestThatItHasTold() throws IOException {
    Uptime uptime = telling("12.00 0\n", "12.5 0\n", "13.00 0\n");
    uptime.read();
    uptime.read();
    assertEquals(new Clock.Instant(13 * SECOND, SECOND / 10), uptime.read());
  }

  @Test
  void whatIsNoUptimeCannotBeRead() {
    for (String line : List.of("", "12", "12.", ".5 1", "twelve.00 1")) {
      assertThrows(NumberFormatException.class, telling(line)::read, line);
    }
  }

  @Test
  void withoutAnUptimeTheTimeCountsInWhichTheMachineWasSuspended() throws IOException {
    AtomicLong steady = new AtomicLong(5);
    AtomicLong ofDay = new AtomicLong(1_000 * SECOND);
    Faster clock = new Faster(steady::get, ofDay::get);
    long began = clock.read().shown();
    steady.addAndGet(SECOND);
    ofDay.addAndGet(SECOND);
    assertEquals(SECOND, clock.read().shown() - began);
    ofDay.addAndGet(-900 * SECOND); // somebody sets the clock back
    assertEquals(SECOND, clock.read().shown() - began);
    ofDay.addAndGet(60 * SECOND); // the machine is suspended
    assertEquals(61 * SECOND, clock.read().shown() - began);
    steady.addAndGet(SECOND);
    assertEquals(62 * SECOND, clock.read().shown() - began);
  }

  @Test
  void aLockIsOverAsSoonAsASuspendedMachineWakesUp() throws Exception {
    AtomicLong slept = new AtomicLong();
    Clock.count(suspendedFor(slept));
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address)) {
      Lock lock = client.acquire("orders");
      sidecar.send("STOP"); // it wakes up later
      slept.set(3600 * SECOND);
      long woke = System.nanoTime();
      LostException lost = lock.lost().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertEquals("LEASE_LOST", lost.why().reason());
      assertTrue(System.nanoTime() - woke < 7 * SECOND / 10, "it is told late");
      assertFalse(lock.isValid());
      sidecar.send("CONT");
    }
  }

  @Test
  void whatIsNotValidAnyMoreSaysWhy() throws Exception {
    AtomicLong slept = new AtomicLong();
    Clock.count(suspendedFor(slept));
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address)) {
      for (int i = 0; i < 10; i++) { // the one that keeps time may have looked just before
        Lock lock = client.acquire("orders/" + i);
        Membership membership = client.join("shop", "member-" + i, new JoinOptions());
        sidecar.send("STOP");
        slept.addAndGet(3600 * SECOND);
        assertEquals("LEASE_LOST", lock.error().orElseThrow().why().reason());
        assertEquals("LEASE_LOST", membership.error().orElseThrow().why().reason());
        assertEquals(Duration.ZERO, lock.validFor());
        sidecar.send("CONT");
      }
    }
  }

  @Test
  void whatWasNeverTheCallersIsNotLost() {
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address)) {
      Clock.count(
          () -> {
            throw new IOException("nobody sees anything");
          });
      List<Executable> calls =
          List.of(
              () -> client.acquire("orders"),
              () -> client.openLease(new LeaseOptions()),
              () -> client.join("shop", "member", new JoinOptions()));
      for (Executable call : calls) {
        assertEquals("LEASE_LOST", assertThrows(SidekeeperException.class, call).reason());
      }
    }
  }

  @Test
  void aClientAsksAgainWhenItsClockCanBeReadAgain() throws Exception {
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address)) {
      client.acquire("orders");
      sidecar.send("STOP"); // so that a question fails while the clock cannot be read
      Sidecar.pause(1.2);
      Clock.count(
          () -> {
            throw new IOException("nobody sees anything");
          });
      Sidecar.pause(2);
      Clock.count(null);
      sidecar.send("CONT");
      Sidecar.until("it is asked about again", () -> isKept(client));
    }
  }

  /** Whether a lock is still valid after longer than what is told at once. */
  private static boolean isKept(Client client) {
    try (Lock lock =
        client.acquire("stock", new LockOptions().waitTimeout(Duration.ofSeconds(5)))) {
      Sidecar.pause(4.5);
      return lock.isValid();
    } catch (Exception failed) {
      return false;
    }
  }
}
