package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Runs what is done while a lock is held, or several, or an attempt at work. It stops that when it
 * must not go on, and ends what is held.
 */
final class Bodies {
  private Bodies() {}

  /** What is done while something is held. */
  interface Work<H, T, E extends Exception> {
    T run(H held) throws E, InterruptedException;
  }

  static <H extends Excluding<?, ?>, T, E extends Exception> T run(H lock, Work<H, T, E> body)
      throws E, InterruptedException {
    T result = attend(lock, body, failure -> lock.release());
    LostException over = lock.whyOver();
    if (over != null) {
      quietly(lock::release);
      throw over.again();
    }
    try {
      lock.release();
    } catch (ReleaseUnconfirmedException unconfirmed) {
      throw unconfirmed.withResult(result);
    }
    return result;
  }

  /** Does the work of an attempt and records how that has ended, even if its lock was lost. */
  static <H extends Recorded<?, ?>, T, E extends Exception> void runRecorded(
      H attempt, Work<H, T, E> work) throws E, InterruptedException {
    attend(attempt, work, attempt::failed);
    attempt.finish(Outcome.SUCCEEDED, "");
  }

  /** Runs a body, and ends what it holds with its failure if it fails. */
  private static <H extends Excluding<?, ?>, T, E extends Exception> T attend(
      H lock, Work<H, T, E> body, Consumer<Throwable> end) throws E, InterruptedException {
    Interruption interruption = new Interruption(Thread.currentThread());
    Guard guard = new Guard(lock, interruption::fire);
    T result;
    GuardScope guarded = lock.openGuard();
    try {
      guard.begin();
      result = body.run(lock);
    } catch (Throwable failure) {
      guarded.close();
      RuntimeException stopped = interruption.finish(failure instanceof InterruptedException);
      guard.end();
      lock.learn(failure);
      lock.validFor(); // which ends it when its time is over
      // A body may have seen that its lock is lost before it was interrupted.
      RuntimeException known = stopped == null ? lock.whyOver() : stopped;
      quietly(() -> end.accept(failure));
      if (stopped != null && isInterruption(failure)) {
        throw told(stopped, failure);
      }
      if (known != null) {
        failure.addSuppressed(told(known, null));
      }
      throw failure;
    }
    guarded.close();
    interruption.finish(false);
    guard.end();
    return result;
  }

  /** It is over for the caller all the same, and the body's failure says more. */
  private static void quietly(Runnable release) {
    try {
      release.run();
    } catch (SidekeeperException | LostException unconfirmed) {
      return;
    }
  }

  private static RuntimeException told(RuntimeException stopped, @Nullable Throwable failure) {
    RuntimeException told = stopped instanceof LostException lost ? lost.again() : stopped;
    if (failure != null) {
      told.addSuppressed(failure);
    }
    return told;
  }

  /** Says whether a body has failed for no other reason than that it was interrupted. */
  private static boolean isInterruption(Throwable failure) {
    return causes(failure).stream()
        .anyMatch(
            cause ->
                cause instanceof InterruptedException
                    || cause instanceof InterruptedIOException
                    || cause instanceof ClosedByInterruptException
                    || cause instanceof CancellationException);
  }

  /** A failure and its causes, each once: they may go in a circle, and getCause may throw. */
  static Set<Throwable> causes(Throwable failure) {
    Set<Throwable> causes = Collections.newSetFromMap(new IdentityHashMap<>());
    Throwable cause = failure;
    try {
      while (cause != null && causes.add(cause)) {
        cause = cause.getCause();
      }
    } catch (RuntimeException | Error untold) {
      return causes; // those before it
    }
    return causes;
  }

  static <H extends Excluding<?, ?>, T> CompletableFuture<T> runAsync(
      H lock, Function<H, ? extends CompletionStage<T>> body) {
    CompletableFuture<T> result = new CompletableFuture<>();
    AtomicReference<@Nullable RuntimeException> stopped = new AtomicReference<>();
    CompletableFuture<T> running = begin(lock, body);
    Guard guard =
        new Guard(
            lock,
            why -> {
              if (stopped.compareAndSet(null, why)) {
                lock.core.workers.run(() -> running.cancel(true));
              }
            });
    guard.begin();
    result.whenComplete(
        (value, failure) -> {
          if (result.isCancelled()) {
            running.cancel(true);
          }
        });
    running.whenComplete(
        (value, failure) -> {
          guard.end();
          LostException over = lock.whyOver();
          lock.releasing()
              .whenComplete(
                  (nothing, unconfirmed) -> {
                    RuntimeException why = stopped.get();
                    if (failure != null && why != null && isInterruption(Waiting.unwrap(failure))) {
                      result.completeExceptionally(told(why, null));
                    } else if (failure != null) {
                      result.completeExceptionally(Waiting.unwrap(failure));
                    } else if (over != null) {
                      result.completeExceptionally(over);
                    } else if (unconfirmed != null) {
                      result.completeExceptionally(withResult(unconfirmed, value));
                    } else {
                      result.complete(value);
                    }
                  });
        });
    return result;
  }

  private static Throwable withResult(Throwable failure, @Nullable Object result) {
    Throwable inner = Waiting.unwrap(failure);
    return inner instanceof ReleaseUnconfirmedException unconfirmed
        ? unconfirmed.withResult(result)
        : inner;
  }

  private static <H extends Excluding<?, ?>, T> CompletableFuture<T> begin(
      H lock, Function<H, ? extends CompletionStage<T>> body) {
    GuardScope guarded = lock.openGuard();
    try {
      return body.apply(lock).toCompletableFuture();
    } catch (Throwable failed) { // whatever it is, the lock is released
      return CompletableFuture.failedFuture(failed);
    } finally {
      guarded.close();
    }
  }
}
