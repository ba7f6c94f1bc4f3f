package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The threads of one client, none of which keeps a program from ending. What callers wrote runs on
 * those of the pool alone, so that it may take its time: the one that keeps time and the one that
 * talks to the sidecar are never held up.
 */
final class Workers {
  private final ScheduledThreadPoolExecutor timer =
      new ScheduledThreadPoolExecutor(1, named("sidekeeper-timer"));
  private final ExecutorService pool = Executors.newCachedThreadPool(named("sidekeeper-worker"));

  Workers() {
    timer.setRemoveOnCancelPolicy(true);
    timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  private static ThreadFactory named(String name) {
    AtomicInteger number = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  /**
   * Has a task run by the thread that keeps time, and returns what takes it back. After the close
   * it is not run.
   */
  Runnable after(Duration delay, Runnable task) {
    try {
      var scheduled =
          timer.schedule(task, TimeUnit.NANOSECONDS.convert(delay), TimeUnit.NANOSECONDS);
      return () -> scheduled.cancel(false);
    } catch (RejectedExecutionException closed) {
      return () -> {};
    }
  }

  /** Has work fail that is not done in time, as with a sidecar that is frozen; returns it. */
  <T> CompletableFuture<T> within(Duration time, Status.Code code, CompletableFuture<T> work) {
    Runnable takeBack =
        after(
            time,
            () ->
                work.completeExceptionally(
                    new SidekeeperException(code, "", new Told("the sidecar does not answer"))));
    work.whenComplete((done, failure) -> takeBack.run());
    return work;
  }

  /** Runs what callers wrote. After the close it runs as well, on a thread of its own. */
  void run(Runnable task) {
    try {
      pool.execute(task);
    } catch (RejectedExecutionException closed) {
      named("sidekeeper-last").newThread(task).start();
    }
  }

  /**
   * Gives a future to a caller, whose own code then runs on the pool. If it is cancelled, the inner
   * one is.
   */
  <T> CompletableFuture<T> hand(CompletableFuture<T> inner) {
    return hand(inner, late -> {});
  }

  /** Gives a future likewise; what was made although the caller has cancelled is undone. */
  <T> CompletableFuture<T> hand(CompletableFuture<T> inner, Consumer<T> undo) {
    CompletableFuture<T> outer = new CompletableFuture<>();
    inner.whenComplete((result, failure) -> run(() -> complete(outer, result, failure, undo)));
    outer.whenComplete(
        (result, failure) -> {
          if (outer.isCancelled()) {
            inner.cancel(true);
          }
        });
    return outer;
  }

  private static <T> void complete(
      CompletableFuture<T> outer, T result, @Nullable Throwable failure, Consumer<T> undo) {
    if (failure != null) {
      outer.completeExceptionally(Waiting.unwrap(failure));
    } else if (!outer.complete(result)) {
      undo.accept(result);
    }
  }

  /** Ends what is not running; what is running is not interrupted. */
  void close() {
    timer.shutdownNow();
    pool.shutdown();
  }
}
