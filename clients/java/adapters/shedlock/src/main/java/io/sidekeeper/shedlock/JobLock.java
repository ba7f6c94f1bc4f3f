package io.sidekeeper.shedlock;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import io.sidekeeper.Attempt;
import io.sidekeeper.Held;
import io.sidekeeper.Lock;
import io.sidekeeper.Outcome;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import java.lang.System.Logger;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * A hold for the time that ShedLock gives it. Times are counted from the grant on, by a monotonic
 * clock.
 */
final class JobLock implements SimpleLock {
  private static final Logger LOG = System.getLogger("io.sidekeeper");

  /** What a job has, and how it is ended: since the job has ended, and without a wait. */
  private record Hold(Held held, boolean once, Runnable end, Runnable drop) {}

  private final Hold hold;
  private final LockConfiguration wanted;

  /** Whether its time ran out first; it is completed once, by the time or by the job. */
  private final CompletableFuture<Boolean> ranOut = new CompletableFuture<>();

  /** Until when it is held at least, as System.nanoTime counts. */
  private final long atLeastUntil;

  /** Whether the job has ended it, or has another in its place. */
  private volatile boolean over;

  /** Is for a job under a lock. */
  JobLock(Lock lock, LockConfiguration wanted) {
    this(new Hold(lock, false, () -> release(lock), lock::releaseAsync), wanted);
  }

  /** Is for a job whose tick is done once: it is done as soon as the job has ended. */
  JobLock(Attempt attempt, LockConfiguration wanted) {
    this(new Hold(attempt, true, () -> finish(attempt, wanted), attempt::releaseAsync), wanted);
  }

  private JobLock(Hold hold, LockConfiguration wanted) {
    this.hold = hold;
    this.wanted = wanted;
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

  /** Records that the tick is done, even if the attempt was lost or its time ran out. */
  private static void finish(Attempt attempt, LockConfiguration wanted) {
    String ended = "job " + wanted.getName() + " has ended, and ";
    try {
      attempt.finish(Outcome.SUCCEEDED, "");
    } catch (SupersededException superseded) {
      throw new LockException(ended + "another has begun it meanwhile", superseded);
    } catch (SidekeeperException unrecorded) {
      throw new LockException(ended + "that is not recorded: others may run it", unrecorded);
    }
  }

  private void atMost(boolean overdue) {
    if (overdue) {
      LOG.log(Logger.Level.WARNING, overdue() + "; the job has not ended");
      hold.drop.run();
    }
  }

  private String overdue() {
    return "lock " + wanted.getName() + " was released after " + wanted.getLockAtMostFor();
  }

  private void checkNotOver() {
    if (over) {
      throw new IllegalStateException("lock " + wanted.getName() + " was unlocked or extended");
    }
  }

  /** Ends it, now or when it has been held for long enough. */
  @Override
  public void unlock() {
    checkNotOver();
    ranOut.complete(false);
    if (!hold.once && ranOut.join()) {
      throw new LockException(overdue() + ", before its job has ended: others may have run since");
    }
    long left = atLeastUntil - System.nanoTime();
    if (!hold.once && left > 0 && hold.held.isValid()) {
      CompletableFuture.delayedExecutor(left, NANOSECONDS).execute(hold.drop);
    } else {
      hold.end.run();
    }
    over = true;
  }

  /**
   * Counts both times anew. If it is not the job's any more, this one stays, so that the end of the
   * job ends it; ShedLock's AbstractSimpleLock would refuse that.
   */
  @Override
  public Optional<SimpleLock> extend(Duration lockAtMostFor, Duration lockAtLeastFor) {
    checkNotOver();
    if (hold.held.isValid() && ranOut.complete(false)) {
      over = true;
      Instant now = ClockProvider.now();
      return Optional.of(
          new JobLock(
              hold, new LockConfiguration(now, wanted.getName(), lockAtMostFor, lockAtLeastFor)));
    }
    if (!hold.once) {
      hold.drop.run(); // even if it was lost: its lease may not have been
    }
    return Optional.empty();
  }
}
