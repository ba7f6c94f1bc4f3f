package io.sidekeeper.shedlock;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import io.sidekeeper.Lock;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
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

  private final Lock hold;

  /** Whether its time ran out first; it is completed once, by the time or by the job. */
  private final CompletableFuture<Boolean> ranOut = new CompletableFuture<>();

  /** Until when it is held at least, as System.nanoTime counts. */
  private final long atLeastUntil;

  JobLock(Lock hold, LockConfiguration wanted) {
    super(wanted);
    this.hold = hold;
    atLeastUntil = System.nanoTime() + nanosUntil(wanted.getLockAtLeastUntil());
    ranOut.completeOnTimeout(true, nanosUntil(wanted.getLockAtMostUntil()), NANOSECONDS);
    ranOut.thenAcceptAsync(this::atMost);
  }

  private static long nanosUntil(Instant time) {
    return NANOSECONDS.convert(Duration.between(ClockProvider.now(), time));
  }

  private void atMost(boolean over) {
    if (over) {
      LOG.log(Logger.Level.WARNING, overdue() + "; the job has not ended");
      hold.releaseAsync();
    }
  }

  private String overdue() {
    return "lock " + hold.name() + " was released after " + lockConfiguration.getLockAtMostFor();
  }

  /** Releases it, now or when it has been held for long enough. */
  @Override
  protected void doUnlock() {
    if (!ranOut.complete(false)) {
      throw new LockException(overdue() + ", before its job has ended: others may have run since");
    }
    long left = atLeastUntil - System.nanoTime();
    if (left > 0 && hold.isValid()) {
      CompletableFuture.delayedExecutor(left, NANOSECONDS).execute(hold::releaseAsync);
      return;
    }
    try {
      hold.release();
    } catch (LostException lost) {
      throw new LockException(
          lost.getMessage() + ": others may have run before the job's end", lost);
    } catch (ReleaseUnconfirmedException unconfirmed) {
      // The job has ended, and nothing may run it again for this.
      LOG.log(Logger.Level.WARNING, unconfirmed.getMessage());
    }
  }

  @Override
  protected Optional<SimpleLock> doExtend(LockConfiguration wanted) {
    if (ranOut.complete(false) && hold.isValid()) {
      return Optional.of(new JobLock(hold, wanted));
    }
    hold.releaseAsync(); // also if it was lost: its lease may not have been
    return Optional.empty();
  }
}
