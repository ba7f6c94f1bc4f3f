package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** What all that is held has in common. Any thread may use it. */
public abstract class Held implements AutoCloseable {
  final Core core;
  final Claim claim;

  Held(Core core, Claim claim) {
    this.core = core;
    this.claim = claim;
  }

  /**
   * Says whether it is certainly the caller's at this moment.
   *
   * @return true only while no other caller can have it
   */
  public final boolean isValid() {
    return !validFor().isZero();
  }

  /**
   * Says for how long it is certainly still the caller's if the sidecar is not heard of again.
   *
   * @return the time left, from now; zero if it is not the caller's
   */
  public final Duration validFor() {
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
    if (!isValid()) { // a lease on which nothing stands
      throw claim.asLost(Keeper.outlived());
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

  @Override
  public abstract void close();
}
