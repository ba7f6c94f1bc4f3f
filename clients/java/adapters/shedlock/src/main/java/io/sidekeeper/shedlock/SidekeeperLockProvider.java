package io.sidekeeper.shedlock;

import io.sidekeeper.Client;
import io.sidekeeper.Lock;
import io.sidekeeper.LockOptions;
import io.sidekeeper.Names;
import io.sidekeeper.OnceOptions;
import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.NotRepeatedException;
import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
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
 * until then. If its process ends meanwhile without closing the client, no process is granted the
 * lock for that time again, or for a minute if that is less.
 *
 * <p>A job whose lock has ended before it did is told so when it ends, by LockException. With
 * {@link #once(String, Ticks)}, each tick of a job is done once.
 */
public final class SidekeeperLockProvider implements ExtensibleLockProvider {
  private static final Duration LONGEST_DELAY = Duration.ofMinutes(1);

  /** How a job is done once for each of its ticks. */
  private record Once(Ticks ticks, OnceOptions options) {}

  private final Client client;
  private final LockOptions options;
  private final Map<String, Once> jobs;

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
    this(client, options.waitTimeout(Duration.ZERO), Map.of());
  }

  private SidekeeperLockProvider(Client client, LockOptions options, Map<String, Once> jobs) {
    this.client = client;
    this.options = options;
    this.jobs = jobs;
  }

  /**
   * Has each tick of a job done once, with the usual options and those of the locks; see {@link
   * #once(String, Ticks, OnceOptions)}.
   *
   * @param job its name
   * @param ticks of its schedule
   * @return a provider that does so
   */
  public SidekeeperLockProvider once(String job, Ticks ticks) {
    return once(
        job,
        ticks,
        new OnceOptions()
            .lease(options.lease())
            .owner(options.owner())
            .metadata(options.metadata())
            .listener(options.listener()));
  }

  /**
   * Has each tick of a job done once: a machine that comes to it after the job has ended does not
   * run it, however short the job was. A tick is done when its job has ended, even with an
   * exception, of which ShedLock does not tell. If its process dies, its lock is lost or {@code
   * lockAtMostFor} is over, a machine that comes to the tick then runs the job, unless the options
   * say otherwise. A job that ends after that has done its tick, unless another has begun it: then
   * it is told by LockException. {@code lockAtLeastFor} has no effect on such a job.
   *
   * @param job its name, which is that of its lock, too. What is no name becomes one as {@link
   *     Names#nameOf} says
   * @param ticks of its schedule
   * @param options for how long a tick is known, and whether it is repeated; the lock is that of
   *     the job, and ShedLock says how long to wait, which is not at all
   * @return a provider that does so
   */
  public SidekeeperLockProvider once(String job, Ticks ticks, OnceOptions options) {
    Map<String, Once> more = new HashMap<>(jobs);
    more.put(job, new Once(ticks, options.perName(true).waitTimeout(Duration.ZERO)));
    return new SidekeeperLockProvider(client, this.options, Map.copyOf(more));
  }

  /**
   * Acquires a lock if it is free, and if the job's tick is not done.
   *
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away: the job
   *     does not run
   */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration wanted) {
    Once once = jobs.get(wanted.getName());
    try {
      return Optional.of(once == null ? acquire(wanted) : begin(once, wanted));
    } catch (LockHeldException | AlreadyDoneException | NotRepeatedException refused) {
      return Optional.empty();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new LockException("interrupted before lock " + wanted.getName(), interrupted);
    }
  }

  private SimpleLock acquire(LockConfiguration wanted) throws InterruptedException {
    Lock lock = client.acquire(Names.nameOf(wanted.getName()), options.lockDelay(delay(wanted)));
    return new JobLock(lock, wanted);
  }

  private SimpleLock begin(Once once, LockConfiguration wanted) throws InterruptedException {
    Instant began = wanted.getLockAtMostUntil().minus(wanted.getLockAtMostFor());
    String tick = once.ticks.keyOf(began);
    return new JobLock(client.begin(Names.nameOf(wanted.getName()), tick, once.options), wanted);
  }

  private static @Nullable Duration delay(LockConfiguration wanted) {
    Duration least = wanted.getLockAtLeastFor();
    if (least.isZero() || least.isNegative()) {
      return null;
    }
    return least.compareTo(LONGEST_DELAY) < 0 ? least : LONGEST_DELAY;
  }
}
