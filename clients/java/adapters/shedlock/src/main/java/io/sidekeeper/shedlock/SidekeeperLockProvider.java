package io.sidekeeper.shedlock;

import io.sidekeeper.Client;
import io.sidekeeper.Lock;
import io.sidekeeper.LockOptions;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.jspecify.annotations.Nullable;

/**
 * Has ShedLock hold the locks of a sidecar, under the names that its jobs give.
 *
 * <p>A lock is held as long as its process lives, and no longer than {@code lockAtMostFor}: then it
 * is released, although the job may still run. A process that ends or is killed loses it at once,
 * as its session ends. A job that is done sooner than {@code lockAtLeastFor} leaves the lock held
 * until then; of a process that ends meanwhile without closing the client, nobody is granted it for
 * that time again, or for a minute if that is less.
 *
 * <p>A job whose lock has ended before it did is told so when it ends, by LockException.
 */
public final class SidekeeperLockProvider implements ExtensibleLockProvider {
  private static final Duration LONGEST_DELAY = Duration.ofMinutes(1);

  private final Client client;
  private final LockOptions options;

  /**
   * Makes one.
   *
   * @param client of the sidecar, which stays open as long as there are jobs
   */
  public SidekeeperLockProvider(Client client) {
    this(client, new LockOptions());
  }

  /**
   * Makes one.
   *
   * @param client of the sidecar, which stays open as long as there are jobs
   * @param options how to hold the locks, such as for whom, and who is told when one is lost;
   *     ShedLock says how long to wait, which is not at all, and the delay
   */
  public SidekeeperLockProvider(Client client, LockOptions options) {
    this.client = client;
    this.options = options.waitTimeout(Duration.ZERO);
  }

  /**
   * Acquires a lock if nobody holds it.
   *
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away: the job
   *     does not run
   */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration wanted) {
    try {
      Lock hold = client.acquire(wanted.getName(), options.lockDelay(delay(wanted)));
      return Optional.of(new JobLock(hold, wanted));
    } catch (LockHeldException held) {
      return Optional.empty();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new LockException("interrupted before lock " + wanted.getName(), interrupted);
    }
  }

  private static @Nullable Duration delay(LockConfiguration wanted) {
    Duration least = wanted.getLockAtLeastFor();
    if (least.isZero() || least.isNegative()) {
      return null;
    }
    return least.compareTo(LONGEST_DELAY) < 0 ? least : LONGEST_DELAY;
  }
}
