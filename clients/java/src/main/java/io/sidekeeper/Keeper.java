package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.lang.System.Logger;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * Asks the sidecar regularly for how long claims are valid, and ends those that were not confirmed
 * in time.
 */
final class Keeper {
  /** What the sidecar says about one claim: its validity in nanoseconds, or how it has ended. */
  record Answer(long validFor, @Nullable SidekeeperException end, boolean givenUp) {}

  /** Asks about claims, for at most so long. */
  interface Ask {
    CompletableFuture<Map<String, Answer>> ask(Collection<String> ids, Duration patience);
  }

  private static final Logger LOG = System.getLogger("io.sidekeeper");
  private static final long SECOND = 1_000_000_000;
  private static final long PAUSE_AFTER_FAILURE = SECOND / 4;
  private static final long SHORTEST_PATIENCE = SECOND / 10;
  static final long SHORTEST_PAUSE = SECOND / 20;
  private static final Duration FIRST_PATIENCE = Duration.ofSeconds(5);

  private final Object monitor;
  private final Workers workers;
  private final Ask ask;
  private final Map<String, Claim> claims = new LinkedHashMap<>();
  private boolean closed;
  private boolean asking;
  private long resting = Long.MIN_VALUE / 2;
  private Runnable takeBack = () -> {};

  Keeper(Object monitor, Workers workers, Ask ask) {
    this.monitor = monitor;
    this.workers = workers;
    this.ask = ask;
  }

  /**
   * Asks for the first validity, and keeps the deadline from then on. Fails with the claim's end,
   * or the want of an answer.
   */
  CompletableFuture<Void> begin(String id, Claim claim) {
    long sent = Clock.before();
    return ask.ask(List.of(id), FIRST_PATIENCE)
        .thenAccept(
            answers -> {
              synchronized (monitor) {
                take(Map.of(id, claim), sent, answers);
                keep(id, claim);
              }
              LostException lost = claim.lost();
              if (lost != null) {
                throw lost;
              }
            });
  }

  private void keep(String id, Claim claim) {
    if (claim.isOver()) {
      return;
    }
    if (closed) {
      claim.lose(Calls.closed());
    } else if (claim.validFor() == 0) {
      claim.lose(outlived());
    } else {
      claims.put(id, claim);
      claim.whenOver(() -> claims.remove(id));
      plan(0);
    }
  }

  /** Ends all claims, and those that begin. */
  void close() {
    synchronized (monitor) {
      closed = true;
      takeBack.run();
      for (Claim claim : List.copyOf(claims.values())) {
        claim.lose(Calls.closed());
      }
    }
  }

  private void plan(long pause) {
    takeBack.run();
    takeBack = workers.after(Duration.ofNanos(pause), this::step);
  }

  /** Does what is due, and comes back for what is due next. */
  private void step() {
    synchronized (monitor) {
      long now = Clock.now();
      for (Claim claim : List.copyOf(claims.values())) {
        if (claim.until() <= now) {
          claim.expire();
        }
      }
      if (closed || claims.isEmpty()) {
        return;
      }
      long due =
          Math.max(claims.values().stream().mapToLong(Claim::due).min().orElseThrow(), resting);
      long before = Clock.before(); // with a clock that cannot be read, nothing is due
      if (due <= before && !asking) {
        question();
      }
      long next = Math.min(earliestEnd(now), asking ? Long.MAX_VALUE : due);
      long nap = Math.min(next, before + Clock.LONGEST_NAP.toNanos()) - before;
      plan(Math.max(0, nap) + SECOND / 1000);
    }
  }

  /** When the validity of the first claim ends that has any left. */
  private long earliestEnd(long now) {
    return claims.values().stream()
        .mapToLong(Claim::until)
        .filter(until -> until > now)
        .min()
        .orElse(Long.MAX_VALUE);
  }

  /**
   * Asks for all claims at once. An answer is waited for while half of the shortest validity
   * passes, or of a second if none is left: then a new question is worth more. What is left is read
   * after what was due: the machine may have slept in between.
   */
  private void question() {
    long now = Clock.now();
    asking = true;
    Map<String, Claim> asked = Map.copyOf(claims);
    long shortest = earliestEnd(now) == Long.MAX_VALUE ? SECOND : earliestEnd(now) - now;
    Duration patience = Duration.ofNanos(Math.max(shortest / 2, SHORTEST_PATIENCE));
    long sent = Clock.before();
    ask.ask(asked.keySet(), patience)
        .whenComplete(
            (answers, failure) -> {
              synchronized (monitor) {
                if (failure == null) {
                  take(asked, sent, answers);
                } else {
                  // What is not confirmed in time ends, whatever the reason.
                  LOG.log(
                      Logger.Level.DEBUG,
                      "the sidecar does not say for how long something is valid",
                      failure);
                  // Not for ever if the clock cannot be read just now.
                  resting = Clock.before() + PAUSE_AFTER_FAILURE;
                }
                asking = false;
                plan(0);
              }
            });
  }

  private static void take(Map<String, Claim> claims, long sent, Map<String, Answer> answers) {
    answers.forEach(
        (id, answer) -> {
          Claim claim = claims.get(id);
          if (claim == null) {
            return;
          }
          if (answer.givenUp()) {
            claim.abandon(null);
          } else if (answer.end() != null) {
            claim.lose(answer.end());
          } else {
            claim.prove(sent, answer.validFor());
          }
        });
  }

  /**
   * How long to let pass between two questions: a quarter of the validity told, and a second at
   * least where that leaves half of it. A lease whose validity is over is asked about all the same.
   */
  static long patience(long validity) {
    return validity > 0
        ? Math.max(validity / 4, Math.max(Math.min(SECOND, validity / 2), SHORTEST_PAUSE))
        : PAUSE_AFTER_FAILURE;
  }

  static SidekeeperException outlived() {
    return SidekeeperException.named(
        "LEASE_LOST", "the sidecar has not confirmed it in time and its validity has run out");
  }

  /** Puts the answers to several questions together; fails if one of them does. */
  static CompletableFuture<Map<String, Answer>> merged(
      List<CompletableFuture<Map<String, Answer>>> parts) {
    return CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new))
        .thenApply(
            nothing -> {
              Map<String, Answer> all = new HashMap<>();
              parts.forEach(part -> all.putAll(part.join()));
              return all;
            });
  }
}
