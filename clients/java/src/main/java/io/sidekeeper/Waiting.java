package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

/** How threads wait for what is done by others. */
final class Waiting {
  private Waiting() {}

  /**
   * Waits, and takes the work back if the thread is interrupted. What it throws has the caller's
   * own stack.
   */
  static <T> T await(CompletableFuture<T> work) throws InterruptedException {
    return await(work, late -> {});
  }

  /** Waits likewise, and undoes what is made although the caller waits no more. */
  static <T> T await(CompletableFuture<T> work, Consumer<T> undo) throws InterruptedException {
    try {
      return work.get();
    } catch (InterruptedException interrupted) {
      if (!work.cancel(true)) {
        work.thenAccept(undo);
      }
      throw interrupted;
    } catch (ExecutionException failed) {
      throw own(failed.getCause() == null ? failed : failed.getCause());
    }
  }

  /** Waits, even if the thread is interrupted; then it still is when this returns. */
  static <T> T awaitAnyway(CompletableFuture<T> work) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return work.get();
        } catch (InterruptedException later) {
          interrupted = true;
        } catch (ExecutionException failed) {
          throw own(failed.getCause() == null ? failed : failed.getCause());
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Waits for an iterator, whose methods cannot throw InterruptedException. The thread stays
   * interrupted.
   */
  static <T> T awaitUnchecked(CompletableFuture<T> work) {
    try {
      return await(work);
    } catch (InterruptedException interrupted) {
      throw interrupted(interrupted);
    }
  }

  static CancellationException interrupted(InterruptedException interrupted) {
    Thread.currentThread().interrupt();
    CancellationException cancelled = new CancellationException("the thread was interrupted");
    cancelled.initCause(interrupted);
    return cancelled;
  }

  /** Says what has failed, without what stages wrap around it. */
  static Throwable unwrap(Throwable failure) {
    Throwable inner = failure;
    while (inner instanceof CompletionException && inner.getCause() != null) {
      inner = inner.getCause();
    }
    return inner;
  }

  /** Makes an exception for the thread that has waited. */
  static RuntimeException own(Throwable failure) {
    Throwable inner = unwrap(failure);
    if (inner instanceof SidekeeperException known) {
      return known.again();
    }
    if (inner instanceof LostException lost) {
      return lost.again();
    }
    if (inner instanceof RuntimeException other) {
      return other;
    }
    if (inner instanceof Error error) {
      throw error;
    }
    return new CompletionException(inner);
  }
}
