package io.sidekeeper.spring;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import io.sidekeeper.Client;
import io.sidekeeper.LockOptions;
import io.sidekeeper.Names;
import io.sidekeeper.ThreadLock;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.integration.support.locks.ExpirableLockRegistry;

/**
 * Has Spring Integration hold the locks of a sidecar. Of each key there is one object, so that a
 * thread which obtains the key again can lock it again.
 *
 * <p>A lock is held until it is unlocked, as long as its process lives, and does not expire
 * meanwhile. What {@link ThreadLock} throws reaches the caller, such as LockLostException when a
 * lock is unlocked that others may have had.
 */
public final class SidekeeperLockRegistry implements ExpirableLockRegistry {
  private final Client client;
  private final String prefix;
  private final LockOptions options;
  private final Map<String, Used> locks = new ConcurrentHashMap<>();

  /** A lock that was obtained last at a time, as System.nanoTime counts. */
  private record Used(ThreadLock lock, long at) {}

  /**
   * Makes one.
   *
   * @param client of the sidecar, which stays open as long as there are locks
   * @param prefix what the names of the locks begin with, before the key; it may be empty
   * @param options how to hold the locks, such as for whom, and who is told when one is lost;
   *     callers say how long to wait
   */
  public SidekeeperLockRegistry(Client client, String prefix, LockOptions options) {
    this.client = client;
    this.prefix = prefix;
    this.options = options;
  }

  /**
   * Gives the lock of a key, without a call to the sidecar.
   *
   * @param lockKey the lock's name after the prefix, a string: what other objects are as one may
   *     differ between processes. What is no name becomes one as {@link Names#nameOf} says
   * @return the lock, the same until it has expired here
   * @throws IllegalArgumentException if the key is no string
   */
  @Override
  public ThreadLock obtain(Object lockKey) {
    if (!(lockKey instanceof String key)) {
      throw new IllegalArgumentException("the key of a lock is a string, not " + lockKey);
    }
    return locks.compute(key, this::use).lock;
  }

  private Used use(String key, @Nullable Used before) {
    ThreadLock lock =
        before == null ? client.threadLock(Names.nameOf(prefix + key), options) : before.lock;
    return new Used(lock, System.nanoTime());
  }

  /**
   * Forgets the locks that no thread holds or waits for, and that no caller has obtained lately. It
   * frees memory, and no lock.
   *
   * @param age in milliseconds: longer than any caller takes from obtain to lock
   */
  @Override
  public void expireUnusedOlderThan(long age) {
    long now = System.nanoTime();
    locks
        .values()
        .removeIf(used -> now - used.at >= MILLISECONDS.toNanos(age) && !used.lock.isInUse());
  }
}
