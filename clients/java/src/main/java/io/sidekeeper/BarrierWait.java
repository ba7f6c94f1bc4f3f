package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.barrier.v1.BarrierServiceGrpc;
import io.sidekeeper.barrier.v1.WaitRequest;
import io.sidekeeper.barrier.v1.WaitResponse;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import io.sidekeeper.errors.WaitTimeoutException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Waits until a barrier is not set, anew whenever the sidecar or the ensemble was away. */
final class BarrierWait {
  private final Core core;
  private final WaitRequest request;
  private final Runnable waiting;
  private final Serial events;
  private final Pause pause = new Pause();
  private final CompletableFuture<Void> result = new CompletableFuture<>();
  private volatile boolean heard; // over this stream
  private volatile Calls.Open stream = () -> {};

  private BarrierWait(Core core, String name, Runnable waiting) {
    this.core = core;
    this.request =
        WaitRequest.newBuilder()
            .setName(Rules.given("name", name))
            .setKeepalive(Watch.KEEPALIVE)
            .build();
    this.waiting = waiting;
    this.events = new Serial(core.workers);
  }

  /** Is completed when the barrier is not set, and waits no longer when it is cancelled. */
  static CompletableFuture<Void> begin(
      Core core, String name, @Nullable Duration timeout, Runnable waiting) {
    Rules.time("waitTimeout", timeout);
    if (timeout != null && timeout.isZero()) {
      throw new IllegalArgumentException("waitTimeout is PT0S: more than no time");
    }
    Rules.given("waiting", waiting);
    BarrierWait wait = new BarrierWait(core, name, waiting);
    Runnable forget = core.calls.atClose(() -> wait.result.completeExceptionally(Calls.closed()));
    wait.result.whenComplete(
        (gone, failure) -> {
          forget.run();
          wait.stream.cancel();
        });
    if (timeout != null) {
      wait.limit(timeout);
    }
    wait.begin();
    return wait.result;
  }

  private void limit(Duration timeout) {
    Told told = new Told("barrier " + request.getName() + ": not seen removed within " + timeout);
    WaitTimeoutException late = new WaitTimeoutException(Status.Code.DEADLINE_EXCEEDED, told);
    Runnable takeBack = core.workers.after(timeout, () -> result.completeExceptionally(late));
    result.whenComplete((gone, failure) -> takeBack.run());
  }

  private synchronized void begin() {
    if (result.isDone()) {
      return;
    }
    try {
      stream =
          core.calls.open(
              BarrierServiceGrpc.getWaitMethod(), request, false, this::hear, this::ended);
    } catch (SidekeeperException closed) {
      result.completeExceptionally(closed);
    }
    if (result.isDone()) { // while the stream was opened
      stream.cancel();
    }
  }

  private void hear(WaitResponse told) {
    heard = true;
    pause.reset();
    if (!told.hasKeepalive()) {
      events.run(waiting);
    }
  }

  private void ended(@Nullable SidekeeperException failure) {
    if (failure == null) {
      result.complete(null);
    } else if (Calls.mayHeal(failure, heard)) {
      heard = false;
      core.workers.after(pause.next(), this::begin);
    } else {
      result.completeExceptionally(failure);
    }
  }
}
