package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.errors.FieldError;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SuspendedException;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.yaml.snakeyaml.Yaml;

/** What one scenario plays on: its sidecar, its clients, and what they have made. */
class Stage implements AutoCloseable {
  /** Something that runs in the background: a body, a leader, a member that stays. */
  static final class Job {
    volatile int times;
    volatile boolean stopped;
    volatile Held held;
    final CountDownLatch finish = new CountDownLatch(1);
    CompletableFuture<Object> task = new CompletableFuture<>();
    Thread thread;

    synchronized void count() {
      times++;
    }
  }

  /** Something that is waited for in the background. */
  static final class Pending implements LockListener, CampaignListener, PermitsListener {
    volatile int position = -1;
    volatile int present;
    volatile Map<String, Integer> ahead = Map.of();
    CompletableFuture<? extends Held> task = new CompletableFuture<>();

    @Override
    public void queued(Queued queued) {
      position = queued.position();
    }

    @Override
    public void queued(int ahead) {
      position = ahead;
    }

    @Override
    public void candidate(int ahead, Optional<Leader> leader) {
      position = ahead;
    }

    @Override
    public void suspended(Duration remaining) {}

    @Override
    public void resumed() {}

    @Override
    public void revocationRequested(Revocation revocation) {}

    @Override
    public void lost(LostException lost) {}
  }

  /** What a watch has told so far. */
  static final class Told {
    volatile Map<String, String> state;
    volatile boolean stale;
    volatile String leader;
  }

  private static final Map<String, Map<String, Object>> SITUATIONS = situations();

  private static Map<String, Map<String, Object>> situations() {
    Path table = Sidecar.ROOT.resolve("clients/conformance/situations.yaml");
    try (Reader reader = Files.newBufferedReader(table)) {
      return new Yaml().load(reader);
    } catch (IOException missing) {
      throw new UncheckedIOException(missing);
    }
  }

  final Sidecar sidecar;
  final Map<String, Object> things = new HashMap<>();
  final Map<String, Revocation> revocations = new java.util.concurrent.ConcurrentHashMap<>();

  /** Which share works on each item, and the items that two have worked on. */
  final Map<String, String> worksOn = new java.util.concurrent.ConcurrentHashMap<>();

  final List<String> workedOnTwice = new java.util.concurrent.CopyOnWriteArrayList<>();
  private final Map<String, Client> clients = new HashMap<>();
  private final List<Job> jobs = new ArrayList<>();

  Stage(Sidecar sidecar) {
    this.sidecar = sidecar;
  }

  @Override
  public void close() {
    Clock.count(null);
    jobs.forEach(job -> job.thread.interrupt());
    clients.values().forEach(Client::close);
    for (Job job : jobs) {
      Sidecar.until("a job ends", () -> !job.thread.isAlive());
    }
  }

  Client client(Step step) {
    return clients.computeIfAbsent(step.text("client", "one"), name -> new Client(sidecar.address));
  }

  /** Makes a client over TCP. */
  void connect(Step step) throws IOException {
    if (!step.has("authority")) {
      connectPlainly(step);
      return;
    }
    try (Sidecar foreign = new Sidecar()) {
      Map<String, Path> folders =
          Map.of("own", sidecar.certificates, "foreign", foreign.certificates);
      @Nullable Path certificate = null;
      if (step.has("certificate")) {
        String whose = step.text("certificate");
        certificate =
            whose.equals("expired")
                ? sidecar.certificates.resolve("expired.pem")
                : folders.get(whose).resolve("client.pem");
      }
      Path authority = folders.get(step.text("authority"));
      clients.put(
          step.text("client"), Sidecar.clientOverTcp(addressOf(step), authority, certificate));
    }
  }

  private String addressOf(Step step) {
    String named = step.text("address", "the secure one");
    return switch (named) {
      case "the secure one" -> sidecar.secureAddress;
      case "the ensemble's" -> sidecar.ensembleAddress;
      case "the served one" -> sidecar.servedAddress;
      default -> named;
    };
  }

  private void connectPlainly(Step step) {
    String address = addressOf(step);
    try {
      ClientBuilder plain = Client.builder();
      clients.put(
          step.text("client"), (address.isEmpty() ? plain : plain.address(address)).build());
    } catch (IllegalArgumentException refused) {
      assertTrue(step.has("says"), refused::getMessage);
      checkText(step, refused.getMessage());
      return;
    }
    assertFalse(step.has("says"), step::toString);
  }

  <T> T thing(Step step, Class<T> kind) {
    return kind.cast(things.get(step.text("of")));
  }

  /** Does it, and sees that it fails as it must. Returns null if it has failed. */
  <T> T attempt(Step step, Callable<T> work) throws Exception {
    if (!step.has("error")) {
      T made = work.call();
      if (step.has("as")) {
        things.put(step.text("as"), made);
      }
      return made;
    }
    try {
      work.call();
    } catch (SidekeeperException | LostException failed) {
      checkError(step, failed);
      return null;
    }
    throw new AssertionError(step + " does not fail");
  }

  void checkError(Step step, Throwable failed) {
    if (failed instanceof SuspendedException) {
      assertEquals("SUSPENDED", step.text("reason"));
      return;
    }
    assertNotNull(failed, step::toString);
    Throwable cause = failed instanceof LostException lost ? lost.why() : failed;
    if (!(cause instanceof SidekeeperException why)) {
      throw new AssertionError(step.toString(), failed);
    }
    if (step.has("error") || step.has("reason")) {
      assertEquals(step.text("error", step.text("reason", "")), why.reason(), step::toString);
    }
    if (step.has("code")) {
      assertEquals(step.text("code"), why.code().name(), step::toString);
    }
    if (step.has("field")) {
      List<String> fields = why.fields().stream().map(FieldError::field).toList();
      assertEquals(List.of(step.text("field")), fields, step::toString);
    }
    checkText(step, why.getMessage());
  }

  private static void checkText(Step step, String text) {
    if (step.has("says") && System.getenv("SIDEKEEPER_SKEW") == null) {
      String wanted = SITUATIONS.get(step.text("says")).get("clients").toString();
      String pattern =
          Arrays.stream(wanted.split("…", -1))
              .map(Pattern::quote)
              .collect(Collectors.joining(".*"));
      assertTrue(Pattern.compile(pattern, Pattern.DOTALL).matcher(text).matches(), text);
    }
  }

  /** Goes on with it in the background. */
  void later(Step step, Pending pending, CompletableFuture<? extends Held> task) {
    pending.task = task;
    things.put(step.text("as"), pending);
  }

  /** Waits until something is so, as late and as early as the step allows. */
  void until(Step step, BooleanSupplier happened) {
    long began = System.nanoTime();
    Sidecar.until(step.toString(), step.within(), happened);
    double took = (System.nanoTime() - began) / 1e9;
    assertTrue(took >= step.seconds("after", 0), () -> step + " happens too early");
  }

  /** Runs something on a thread of its own. */
  Job background(Step step, Job job, Callable<?> work) {
    job.thread =
        new Thread(
            () -> {
              try {
                job.task.complete(work.call());
              } catch (Throwable failed) {
                job.task.completeExceptionally(failed);
              }
            });
    job.thread.start();
    jobs.add(job);
    things.put(step.text("as"), job);
    return job;
  }

  static Throwable failureOf(CompletableFuture<?> task) {
    assertTrue(task.isDone());
    return task.handle((done, failed) -> failed == null ? null : Waiting.unwrap(failed)).join();
  }

  static void assertInvalid(Held held) {
    assertFalse(held.isValid());
    assertTrue(held.validFor().isZero());
  }
}
