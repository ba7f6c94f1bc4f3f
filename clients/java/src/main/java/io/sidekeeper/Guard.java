package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SuspendedException;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * Says when the body of a lock, or of several, must stop: the lock is over, and the body has not
 * released it; or it is suspended for longer than its grace.
 */
final class Guard {
  private final Excluding<?, ?> lock;
  private final Consumer<RuntimeException> stop;
  private Runnable takeBack = () -> {};

  /** Calls stop, at once if the lock is over already. It must be quick. */
  Guard(Excluding<?, ?> lock, Consumer<RuntimeException> stop) {
    this.lock = lock;
    this.stop = stop;
  }

  void begin() {
    lock.claim.stopsOver(
        () -> {
          LostException lost = lock.whyOver();
          if (lost != null) {
            stop.accept(lost);
          }
        });
    lock.whenSuspended(this::hear);
  }

  private void hear(boolean suspended) {
    takeBack.run();
    Duration grace = lock.suspensionGrace();
    if (suspended && grace != null) {
      takeBack = lock.core.workers.after(grace, () -> end(grace));
    }
  }

  private void end(Duration grace) {
    synchronized (lock.core.monitor) {
      if (lock.isSuspended()) {
        stop.accept(
            new SuspendedException(lock.claim.what + " has been suspended for " + seconds(grace)));
      }
    }
  }

  private static String seconds(Duration duration) {
    return duration.toMillis() / 1000.0 + " s";
  }

  void end() {
    lock.whenSuspended(suspended -> {});
    takeBack.run();
  }
}
