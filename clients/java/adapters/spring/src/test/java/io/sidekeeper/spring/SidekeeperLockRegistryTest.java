package io.sidekeeper.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sidekeeper.LockOptions;
import io.sidekeeper.ThreadLock;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.leader.Context;
import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;
import org.springframework.integration.support.locks.LockRegistry;

/** With Spring Integration's own users of a registry. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class SidekeeperLockRegistryTest {
  private static final int PATIENT = 120;

  /** An application's, as far as the sidecar knows. */
  private static SidekeeperLockRegistry registry(Sidecar sidecar) {
    return new SidekeeperLockRegistry(sidecar.client(), "", new LockOptions());
  }

  @Test
  void aThreadHasAKeyTwiceAndNobodyElseHasIt(Sidecar sidecar) throws Exception {
    SidekeeperLockRegistry mine = registry(sidecar);
    SidekeeperLockRegistry other = registry(sidecar);
    Duration soon = Duration.ofMillis(50);
    mine.executeLocked(
        "orders",
        () -> {
          long token = mine.obtain("orders").hold().fencingToken();
          mine.executeLocked(
              "orders", () -> assertEquals(token, mine.obtain("orders").hold().fencingToken()));
          assertFalse(other.obtain("orders").tryLock());
          assertThrows(
              TimeoutException.class, () -> other.executeLocked("orders", soon, () -> "ran"));
        });
    assertEquals("ran", other.executeLocked("orders", soon.multipliedBy(1000), () -> "ran"));
  }

  @Test
  void whatRanUnderALostLockIsTold(Sidecar sidecar) {
    assertThrows(
        LockLostException.class,
        () -> registry(sidecar).executeLocked("orders", () -> sidecar.expireLock("orders")));
  }

  @Test
  void aKeyThatIsNoNameBecomesOne(Sidecar sidecar) throws Exception {
    registry(sidecar)
        .executeLocked(
            "orders:eu",
            () -> assertEquals(1, sidecar.client().getLock("_-orders_3aeu").holders().size()));
  }

  @Test
  void aKeyIsAString(Sidecar sidecar) {
    SidekeeperLockRegistry registry = registry(sidecar);
    assertThrows(IllegalArgumentException.class, () -> registry.obtain(new Object()));
  }

  @Test
  void onlyWhatIsUnusedForLongIsForgotten(Sidecar sidecar) {
    SidekeeperLockRegistry registry = registry(sidecar);
    ThreadLock unused = registry.obtain("unused");
    ThreadLock used = registry.obtain("used");
    used.lock();
    registry.expireUnusedOlderThan(Duration.ofHours(1).toMillis());
    assertSame(unused, registry.obtain("unused"));

    registry.expireUnusedOlderThan(0);
    assertNotSame(unused, registry.obtain("unused"));
    assertSame(used, registry.obtain("used"));
    used.unlock();
    registry.expireUnusedOlderThan(0);
    assertNotSame(used, registry.obtain("used"));
  }

  private static LockRegistryLeaderInitiator candidate(
      Sidecar sidecar, String name, BlockingQueue<String> events) {
    DefaultCandidate candidate =
        new DefaultCandidate(name, "leader") {
          @Override
          public void onGranted(Context context) {
            events.add(name + " leads");
          }

          @Override
          public void onRevoked(Context context) {
            events.add(name + " does not lead");
          }
        };
    return new LockRegistryLeaderInitiator(registry(sidecar), candidate);
  }

  @Test
  void aLeaderOfSpringIntegrationThatLostItsLockIsRevoked(Sidecar sidecar) throws Exception {
    BlockingQueue<String> events = new LinkedBlockingQueue<>();
    LockRegistryLeaderInitiator first = candidate(sidecar, "one", events);
    LockRegistryLeaderInitiator second = candidate(sidecar, "two", events);
    try {
      first.start();
      assertEquals("one leads", events.poll(PATIENT, TimeUnit.SECONDS));
      sidecar.expireLock("leader");
      assertEquals("one does not lead", events.poll(PATIENT, TimeUnit.SECONDS));
      assertEquals("one leads", events.poll(PATIENT, TimeUnit.SECONDS));

      second.start();
      first.stop();
      Set<String> both = new HashSet<>(); // in either order: it unlocks, and then is revoked
      both.add(events.poll(PATIENT, TimeUnit.SECONDS));
      both.add(events.poll(PATIENT, TimeUnit.SECONDS));
      assertEquals(Set.of("one does not lead", "two leads"), both);
    } finally {
      first.destroy();
      second.destroy();
    }
  }

  /** An application that adds to the number in a file, and then does a job that does not end. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Program {
    static final int TIMES = 20;

    public static void main(String[] arguments) {
      new SpringApplicationBuilder(Program.class)
          .properties("spring.main.banner-mode=off")
          .run(arguments);
    }

    @Bean
    ApplicationRunner job(LockRegistry locks) {
      return given -> {
        Path file = Path.of(given.getNonOptionArgs().get(0));
        for (int ran = 0; ran < TIMES; ran++) {
          locks.executeLocked("report", () -> count(file));
        }
        locks.executeLocked(
            "report",
            () -> {
              System.out.println("holds");
              return System.in.read();
            });
      };
    }

    private static String count(Path file) throws IOException {
      int number = Integer.parseInt(Files.readString(file)) + 1;
      Files.writeString(file, String.valueOf(number));
      return "counted";
    }
  }

  private static Process start(Sidecar sidecar, Path file) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    String address = "--sidekeeper.address=" + sidecar.address();
    return new ProcessBuilder(java, "-cp", path, Program.class.getName(), address, file.toString())
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
  void ofTwoApplicationsOneIsKilledAndTheOtherGoesOn(Sidecar sidecar, @TempDir Path folder)
      throws Exception {
    Path file = Files.writeString(folder.resolve("number"), "0");
    Process one = start(sidecar, file);
    Process two = start(sidecar, file);
    try {
      CompletableFuture<Process> first = holding(one);
      CompletableFuture<Process> second = holding(two);
      Process holder =
          (Process) CompletableFuture.anyOf(first, second).get(PATIENT, TimeUnit.SECONDS);
      assertFalse(registry(sidecar).obtain("report").tryLock());
      holder.destroyForcibly(); // as kill -9 does
      (holder == one ? second : first).get(PATIENT, TimeUnit.SECONDS);
      assertEquals(String.valueOf(2 * Program.TIMES), Files.readString(file));
    } finally {
      one.destroyForcibly();
      two.destroyForcibly();
    }
  }
}
