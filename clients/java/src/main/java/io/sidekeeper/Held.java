package io.sidekeeper;

import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What is the same for locks, leases and memberships. Any thread may use it. */
public abstract sealed class Held implements AutoCloseable permits Lease, Lock, Membership {
  private static final int GIVE_UP_ATTEMPTS = 3;
  private static final Duration GIVE_UP_PATIENCE = Duration.ofSeconds(5);

  final Core core;
  final Claim claim;
  private final CompletableFuture<Void> followed = new CompletableFuture<>();
  private volatile boolean released;
  private @Nullable CompletableFuture<Void> givingUp;

  Held(Core core, String what, BiFunction<String, SidekeeperException, LostException> kind) {
    this.core = core;
    this.claim = new Claim(core.monitor, what, kind);
  }

  /**
   * Says whether it is certainly the caller's at this moment.
   *
   * @return true only while nobody else can have it
   */
  public final boolean isValid() {
    return !validFor().isZero();
  }

  /**
   * Says for how long it is certainly still the caller's if the sidecar is not heard of again.
   *
   * @return the time left, from now; zero if it is not the caller's
   */
  public Duration validFor() {
    return Duration.ofNanos(claim.validFor());
  }

  /**
   * Says whether the sidecar has lost contact with the ensemble and not regained it yet.
   *
   * @return true while what is held is in doubt
   */
  public final boolean isSuspended() {
    return claim.isSuspended();
  }

  /**
   * Says why it was lost.
   *
   * @return empty as long as it is valid, and if it was given up
   */
  public final Optional<LostException> error() {
    validFor(); // which ends it when its time is over
    return Optional.ofNullable(claim.lost());
  }

  /**
   * Is for those who look before each step.
   *
   * @throws LostException if it is not certainly the caller's any more
   * @throws IllegalStateException if the caller has given it up
   */
  public final void check() {
    LostException lost = error().orElse(null);
    if (lost != null) {
      throw lost.again();
    }
    if (claim.isOver()) {
      throw new IllegalStateException(claim.what + " was given up");
    }
  }

  /**
   * Tells of a loss. What the caller adds to the stage runs on a thread of the client.
   *
   * @return a stage that is completed with the cause when it is lost, and never if it is given up
   */
  public final CompletionStage<LostException> lost() {
    CompletableFuture<LostException> lost = new CompletableFuture<>();
    claim.ended.thenRun(() -> error().ifPresent(lost::complete));
    return core.workers.hand(lost).minimalCompletionStage();
  }

  /**
   * Tells of the end. What the caller adds to the stage runs on a thread of the client.
   *
   * @return a stage that is completed when it is the caller's no more: lost, or given up
   */
  public final CompletionStage<Void> ended() {
    return core.workers.hand(claim.ended.copy()).minimalCompletionStage();
  }

  /**
   * Says why it is over for the caller, who has not released it: lost, or released by its id
   * elsewhere. Null if the caller has, and as long as it is not over.
   */
  final @Nullable LostException whyOver() {
    LostException lost = claim.lost();
    if (lost != null || released || !claim.isOver()) {
      return lost;
    }
    return claim.asLost(
        new SidekeeperException(Status.Code.ABORTED, "", new Told("it was released elsewhere")));
  }

  @Override
  public abstract void close();

  /** Is called when its stream has ended, and it with that. */
  void streamEnded() {}

  /**
   * Reads the stream until its end, which is the end of the claim. Completed when the first event
   * of interest has come.
   */
  final <Q, R> CompletableFuture<Void> follow(
      MethodDescriptor<Q, R> method, Q request, Predicate<R> begun) {
    CompletableFuture<Void> first = new CompletableFuture<>();
    Calls.Stream stream =
        core.calls.open(
            method,
            request,
            false,
            event -> {
              if (begun.test(event)) {
                first.complete(null);
              }
            },
            failure -> {
              ended(failure);
              first.completeExceptionally(failure == null ? silent() : failure);
            });
    claim.streamsOver(stream::cancel);
    core.open.add(this);
    followed.thenRun(() -> core.open.remove(this));
    return first;
  }

  private void ended(@Nullable SidekeeperException failure) {
    if (failure == null) {
      claim.end(null);
    } else {
      claim.lose(failure);
    }
    followed.complete(null);
    streamEnded();
  }

  private static SidekeeperException silent() {
    return new SidekeeperException(
        Status.Code.UNAVAILABLE, "", new Told("the sidecar ended the stream without a word"));
  }

  /** Gives it up without a word, when it was not handed out yet. */
  final CompletableFuture<Void> abandon() {
    claim.abandon(null);
    return followed;
  }

  /**
   * Has the sidecar confirm that it is given up, once. Fails with LostException if it was lost
   * before.
   */
  final <Q, R> CompletableFuture<Void> confirm(MethodDescriptor<Q, R> method, Q request) {
    return once(
        () -> {
          LostException lost = claim.lost();
          CompletableFuture<Void> asked = new CompletableFuture<>();
          if (lost == null) {
            askToTakeBack(method, request, 1, asked);
          } else {
            asked.completeExceptionally(lost);
          }
          Runnable forget = core.calls.atClose(() -> asked.completeExceptionally(Calls.closed()));
          return asked.whenComplete(
              (nothing, failure) -> {
                forget.run();
                claim.abandon(null);
              });
        });
  }

  /** Ends it for the caller, and does the rest of giving it up once. */
  final CompletableFuture<Void> once(Supplier<CompletableFuture<Void>> rest) {
    if (!claim.isOver()) {
      released = true;
    }
    claim.end(null);
    synchronized (this) {
      if (givingUp == null) {
        givingUp = rest.get();
      }
      return givingUp.copy();
    }
  }

  private <Q, R> void askToTakeBack(
      MethodDescriptor<Q, R> method, Q request, int attempt, CompletableFuture<Void> asked) {
    core.calls
        .ask(method, request, GIVE_UP_PATIENCE)
        .whenComplete(
            (reply, failure) -> {
              if (failure == null) {
                asked.complete(null);
              } else if (!(failure instanceof SidekeeperException known)) {
                asked.completeExceptionally(failure);
              } else if (known.code() == Status.Code.ABORTED) {
                asked.completeExceptionally(claim.asLost(known));
              } else if (attempt < GIVE_UP_ATTEMPTS && isUnanswered(known)) {
                Duration rest = Duration.ofMillis(ThreadLocalRandom.current().nextInt(50, 100));
                core.workers.after(rest, () -> askToTakeBack(method, request, attempt + 1, asked));
              } else {
                asked.completeExceptionally(known);
              }
            });
  }

  private static boolean isUnanswered(SidekeeperException failure) {
    boolean silence =
        failure.code() == Status.Code.UNAVAILABLE
            || failure.code() == Status.Code.DEADLINE_EXCEEDED;
    return silence && failure.reason().isEmpty();
  }
}
