package io.sidekeeper;

import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Begins what stands on a lease, with one of its own if none is given. */
final class Grounded {
  private Grounded() {}

  /**
   * Begins it on the lease that is given, or on one that is opened for it, and abandoned if it
   * fails.
   */
  static <H> CompletableFuture<H> begin(
      Kind<MultiplexRequest, MultiplexResponse> leases,
      @Nullable Lease given,
      String owner,
      Runnable heard,
      Function<Lease, CompletableFuture<H>> begin,
      Consumer<H> giveUp) {
    if (given != null) {
      return begin.apply(given);
    }
    CompletableFuture<Lease> opened =
        new Lease(leases).open(new LeaseOptions().owner(owner), heard);
    CompletableFuture<H> result = new CompletableFuture<>();
    CompletableFuture<H> begun =
        opened.thenCompose(
            lease -> {
              CompletableFuture<H> beginning = begin.apply(lease);
              result.whenComplete(
                  (made, failure) -> {
                    if (failure != null) {
                      beginning.cancel(true);
                    }
                  });
              return beginning.whenComplete(
                  (made, failure) -> {
                    if (failure != null) {
                      lease.abandon();
                    }
                  });
            });
    begun.whenComplete(
        (made, failure) -> {
          if (failure != null) {
            result.completeExceptionally(Waiting.unwrap(failure));
          } else if (!result.complete(made)) {
            giveUp.accept(made);
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
}
