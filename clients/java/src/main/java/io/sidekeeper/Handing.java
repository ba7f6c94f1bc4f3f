package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Hands out what was asked for, or gives it up: when it fails, and when the caller waits for it no
 * more.
 */
final class Handing {
  private Handing() {}

  /**
   * Begins something, and completes with it when it is the caller's. It gives up what fails or is
   * cancelled, even by the caller that waits for it.
   */
  static <H extends Held> CompletableFuture<H> out(
      H held, Supplier<CompletableFuture<Void>> begin) {
    CompletableFuture<H> handed = new CompletableFuture<>();
    try {
      begin.get().whenComplete((nothing, failure) -> settle(held, handed, failure));
    } catch (SidekeeperException refused) {
      settle(held, handed, refused);
    }
    handed.whenComplete(
        (result, failure) -> {
          if (failure != null) {
            held.claim.abandon(null);
          }
        });
    return handed;
  }

  private static <H extends Held> void settle(
      H held, CompletableFuture<H> handed, @Nullable Throwable failure) {
    if (failure != null) {
      LostException lost = held.claim.lost();
      held.claim.abandon(null);
      // Nothing was the caller's yet, so that nothing is lost.
      handed.completeExceptionally(lost != null ? lost.why() : Waiting.unwrap(failure));
    } else if (!handed.complete(held)) {
      held.claim.abandon(null);
    }
  }
}
