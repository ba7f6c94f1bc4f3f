package io.sidekeeper.shedlock;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import io.sidekeeper.Attempt;
import io.sidekeeper.Held;
import io.sidekeeper.Lock;
import io.sidekeeper.Outcome;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import java.lang.System.Logger;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * A hold for the time that ShedLock gives it. Times are counted from the grant on, by a clock that
 * nobody sets.
 */
final class JobLock extends AbstractSimpleLock {
  private static final Logger LOG = System.getLogger("io.sidekeeper");

  /** What a job has, and how it is ended: since the job has ended, and without a wait. */
  private record Hold(Held held, boolean atLeast, Runnable end, Runnable drop) {}

  private final Hold hold;

  /** Whether its time ran out first; it is completed once, by the time or by the job. */
  private final CompletableFuture<Boolean> ranOut = new CompletableFuture<>();

  /** Until when it is held at least, as System.nanoTime counts. */
  private final long atLeastUntil;

  /** Is for a job under a lock. */
  JobLock(Lock lock, LockConfiguration wanted) {
    this(new Hold(lock, true, () -> release(lock), lock::releaseAsync), wanted);
  }

  /** Is for a job whose tick is done once: it is done as soon as the job has ended. */
  JobLock(Attempt attempt, LockConfiguration wanted) {
    this(new Hold(attempt, false, () -> finish(attempt, wanted), attempt::releaseAsync), wanted);
  }

  private JobLock(Hold hold, LockConfiguration wanted) {
    super(wanted);
    this.hold = hold;
    atLeastUntil = System.nanoTime() + nanosUntil(wanted.getLockAtLeastUntil());
    ranOut.completeOnTimeout(true, nanosUntil(wanted.getLockAtMostUntil()), NANOSECONDS);
    ranOut.thenAcceptAsync(this::atMost);
  }

  private static long nanosUntil(Instant time) {
    return NANOSECONDS.convert(Duration.between(ClockProvider.now(), time));
  }

  private static void release(Lock lock) {
    try {
      lock.release();
    } catch (LostException lost) {
      throw new LockException(
          lost.getMessage() + ": others may have run before the job's end", lost);
    } catch (ReleaseUnconfirmedException unconfirmed) {
      // The job has ended, and nothing may run it again for this.
      LOG.log(Logger.Level.WARNING, unconfirmed.getMessage());
    }
  }

  private static void finish(Attempt attempt, LockConfiguration wanted) {
    try {
      attempt.finish(Outcome.SUCCEEDED, "");
    } catch (SidekeeperException unrecorded) {
      throw new LockException(
          "job " + wanted.getName() + " has ended, and that is not recorded: others may run it",
          unrecorded);
    }
  }

  private void atMost(boolean over) {
    if (over) {
      LOG.log(Logger.Level.WARNING, overdue() + "; the job has not ended");
      hold.drop.run();
    }
  }

  private String overdue() {
    String name = lockConfiguration.getName();
    return "lock " + name + " was released after " + lockConfiguration.getLockAtMostFor();
  }

  /** Ends it, now or when it has been held for long enough. */
  @Override
  protected void doUnlock() {
    if (!ranOut.complete(false)) {
      throw new LockException(overdue() + ", before its job has ended: others may have run since");
    }
    long left = atLeastUntil - System.nanoTime();
    if (hold.atLeast && left > 0 && hold.held.isValid()) {
      CompletableFuture.delayedExecutor(left, NANOSECONDS).execute(hold.drop);
    } else {
      hold.end.run();
    }
  }

  @Override
  protected Optional<SimpleLock> doExtend(LockConfiguration wanted) {
    if (ranOut.complete(false) && hold.held.isValid()) {
      return Optional.of(new JobLock(hold, wanted));
    }
    hold.drop.run(); // also if it was lost: its lease may not have been
    return Optional.empty();
  }
}
