package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Makes attempts until one succeeds or fails for a reason that time does not heal: for as long as
 * the caller waits, and without a limit to that until nothing has been heard for TIMEOUT. What an
 * attempt was granted has ended before the next one.
 */
final class Absence<T> {
  /**
   * For how long a sidecar or an ensemble that is away is waited for, unless the caller says so.
   */
  static final Duration TIMEOUT = Duration.ofSeconds(10);

  /**
   * How much longer than the caller waits a sidecar may take to answer: a frozen one never does.
   */
  private static final Duration ANSWER_TIME = Duration.ofSeconds(2);

  /** Zero would be an attempt that does not wait. */
  static final Duration SHORTEST = Duration.ofMillis(1);

  /** Makes one attempt, with what is left of the wait, and says when it hears of the sidecar. */
  interface Attempt<T> {
    CompletableFuture<T> begin(@Nullable Duration wait, Runnable heard);
  }

  private final Core core;
  private final @Nullable Duration wait;
  private final @Nullable Lease lease;
  private final Attempt<T> attempt;
  private final Consumer<T> undo;
  private final CompletableFuture<T> result = new CompletableFuture<>();
  private final Pause pause = new Pause();

  /** When the time began that is left for an absence. */
  private volatile long since = System.nanoTime();

  private volatile boolean hasFailed;

  private Absence(
      Core core,
      @Nullable Duration wait,
      @Nullable Lease lease,
      Attempt<T> attempt,
      Consumer<T> undo) {
    this.core = core;
    this.wait = wait;
    this.lease = lease;
    this.attempt = attempt;
    this.undo = undo;
  }

  /**
   * Asks for what stands on a lease, if one is given: then no longer than that lives. It undoes
   * what is granted although the caller waits no more.
   */
  static <T> CompletableFuture<T> through(
      Core core,
      @Nullable Duration wait,
      @Nullable Lease lease,
      Attempt<T> attempt,
      Consumer<T> undo) {
    Absence<T> absence = new Absence<>(core, wait, lease, attempt, undo);
    absence.beginWhenValid(wait, System.nanoTime());
    Runnable forget =
        core.calls.atClose(() -> absence.result.completeExceptionally(Calls.closed()));
    absence.result.whenComplete((made, failure) -> forget.run());
    return absence.result;
  }

  /**
   * Begins when the lease is valid or over. While nothing stands on it, it may be neither: then its
   * keeper goes on asking.
   */
  private void beginWhenValid(@Nullable Duration left, long since) {
    if (result.isDone()) {
      return;
    }
    if (lease == null || lease.isValid() || lease.claim.isOver()) {
      begin(left);
    } else if (System.nanoTime() - since > ANSWER_TIME.toNanos()) {
      CompletableFuture<T> silent = CompletableFuture.failedFuture(silent());
      silent.whenComplete((made, failure) -> take(made, failure, false));
    } else {
      Duration pause = Duration.ofNanos(Keeper.SHORTEST_PAUSE);
      core.workers.after(pause, () -> beginWhenValid(left, since));
    }
  }

  private static SidekeeperException silent() {
    Told unanswered = new Told("the sidecar does not answer");
    return new SidekeeperException(Status.Code.UNAVAILABLE, "", unanswered);
  }

  private void begin(@Nullable Duration left) {
    AtomicBoolean heard = new AtomicBoolean();
    CompletableFuture<T> once = attempt.begin(left, () -> heard.set(true));
    once.whenComplete((made, failure) -> take(made, failure, heard.get()));
    if (left != null && !left.isZero()) { // which takes as long as the ensemble takes
      Duration bound = Duration.ofNanos(TimeUnit.NANOSECONDS.convert(left)).plus(ANSWER_TIME);
      core.workers.within(bound, Status.Code.UNAVAILABLE, once);
    }
    result.whenComplete(
        (made, failure) -> {
          if (result.isCancelled()) {
            once.cancel(true);
          }
        });
  }

  private void take(T made, @Nullable Throwable failure, boolean heard) {
    if (failure == null) {
      if (!result.complete(made)) {
        undo.accept(made);
      }
      return;
    }
    if (heard) {
      pause.reset();
    }
    if (wait == null && (heard || !hasFailed)) {
      since = System.nanoTime();
    }
    hasFailed = true;
    Throwable why = Waiting.unwrap(failure);
    Duration rest = pause.next();
    if (isAway(why, heard) && rest.compareTo(left()) < 0) {
      core.workers.after(rest, this::again);
    } else {
      result.completeExceptionally(why);
    }
  }

  private boolean isAway(Throwable failure, boolean heard) {
    boolean ended = lease != null && lease.claim.isOver();
    return !ended && failure instanceof SidekeeperException known && Calls.mayHeal(known, heard);
  }

  private Duration left() {
    Duration all = wait == null ? TIMEOUT : wait;
    return all.minusNanos(System.nanoTime() - since);
  }

  private void again() {
    Duration left = left();
    beginWhenValid(
        wait == null ? null : left.compareTo(SHORTEST) > 0 ? left : SHORTEST, System.nanoTime());
  }
}
