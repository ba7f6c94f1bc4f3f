package io.sidekeeper;

import org.jspecify.annotations.Nullable;

/**
 * Interrupts one thread at most once, and never after it has finished what it was to be interrupted
 * in.
 */
final class Interruption {
  private final Thread target;
  private boolean finished;
  private @Nullable RuntimeException cause;

  Interruption(Thread target) {
    this.target = target;
  }

  synchronized void fire(RuntimeException cause) {
    if (!finished && this.cause == null) {
      this.cause = cause;
      target.interrupt();
    }
  }

  /**
   * Ends the danger, and takes an interrupt back that has not been seen. One that has been seen is
   * gone, so that the thread is interrupted only if others have done that since. Returns its cause,
   * if there was one.
   */
  synchronized @Nullable RuntimeException finish(boolean seen) {
    if (!finished) {
      finished = true;
      if (cause != null && !seen) {
        Thread.interrupted();
      }
    }
    return cause;
  }
}
