package io.sidekeeper;

import com.google.protobuf.Message;
import io.grpc.Status;
import io.sidekeeper.errors.EnsembleUnreachableException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/** What stands on a lease, which may be its alone, or has a call of its own. */
abstract class Grounded<Q extends Message, R extends Message> extends HeldStream<Q, R> {
  /** The lease that is its alone; null if it was given one, or needs none. */
  final @Nullable Lease own;

  Grounded(
      Kind<Q, R> kind,
      String what,
      BiFunction<String, SidekeeperException, LostException> loss,
      @Nullable Lease given,
      @Nullable Lease own) {
    super(kind, what, loss, own == null ? given : own);
    this.own = own;
  }

  /** Gives it up without a word, and a lease of its own with it. */
  final void giveUp() {
    claim.abandon(null);
    if (own != null) {
      own.claim.abandon(null);
    }
  }

  /** Has the sidecar confirm that it is released, and closes a lease of its own. */
  final CompletableFuture<Void> releasing() {
    CompletableFuture<Void> given = givingUp();
    return own == null
        ? given
        : given.whenComplete((gone, failure) -> own.closeUsed(failure == null));
  }

  /** Begins something on its lease, with what is left of the wait. */
  interface Begin<H> {
    CompletableFuture<H> on(Lease lease, @Nullable Duration wait);
  }

  /**
   * Begins something on a lease that is opened for it alone, and abandoned if it fails. The wait is
   * for both.
   */
  static <H extends Grounded<?, ?>> CompletableFuture<H> begin(
      Kind<MultiplexRequest, MultiplexResponse> leases,
      LeaseOptions options,
      @Nullable Duration wait,
      Runnable heard,
      Begin<H> begin) {
    long began = System.nanoTime();
    CompletableFuture<Lease> opened = new Lease(leases).open(options, heard);
    CompletableFuture<H> result = new CompletableFuture<>();
    CompletableFuture<H> begun =
        opened.thenCompose(
            lease -> {
              CompletableFuture<H> beginning = begin.on(lease, left(wait, began));
              result.whenComplete(
                  (made, failure) -> {
                    if (failure != null) {
                      beginning.cancel(true);
                    }
                  });
              return beginning.exceptionallyCompose(
                  failure -> CompletableFuture.failedFuture(dropUnused(lease, failure)));
            });
    begun.whenComplete(
        (made, failure) -> {
          if (failure != null) {
            result.completeExceptionally(Waiting.unwrap(failure));
          } else if (!result.complete(made)) {
            made.giveUp();
          }
        });
    result.whenComplete(
        (made, failure) -> {
          if (failure != null) {
            opened.cancel(true);
          }
        });
    return result;
  }

  private static @Nullable Duration left(@Nullable Duration wait, long began) {
    if (wait == null || wait.isZero()) {
      return wait;
    }
    Duration left = wait.minusNanos(System.nanoTime() - began);
    return left.compareTo(Absence.SHORTEST) > 0 ? left : Absence.SHORTEST;
  }

  /**
   * Ends a lease whose only thing has not begun, and returns why that is. If the lease was lost
   * first, another attempt may succeed: nothing was the caller's yet. The sidecar says of the thing
   * that the lease is lost before it ends the lease's stream.
   */
  private static Throwable dropUnused(Lease lease, Throwable failure) {
    Throwable why = Waiting.unwrap(failure);
    LostException lost = lease.claim.lost();
    lease.abandon();
    if (why instanceof SidekeeperException said
        && said.code() == Status.Code.ABORTED
        && (said.reason().equals("LEASE_LOST") || (lost != null && said == lost.why()))) {
      Told told = new Told("nothing is held: " + said.getMessage());
      return new EnsembleUnreachableException(Status.Code.UNAVAILABLE, told);
    }
    return why;
  }
}
