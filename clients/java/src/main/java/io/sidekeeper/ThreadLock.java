package io.sidekeeper;

import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A lock of the sidecar for code that knows Java's own: a thread holds it, can take it again, and
 * has to unlock it as often. Of all threads that use this object one at a time is a contender for
 * the lock, in the order in which they came; other objects for the same name, here and in other
 * programs, are contenders of their own, also on the same thread.
 *
 * <p>Java's interface has no word for a lock that is lost while it is held. Here, a thread that
 * takes a lost lock again, or unlocks it, gets LockLostException; {@link #isHeldByCurrentThread}
 * says it before, and the listener of the options as soon as it happens. The thread is not
 * interrupted: {@link Client#withLock} does that.
 *
 * <p>What takes or releases a lock may fail with SidekeeperException, such as when there is no
 * sidecar for 10 seconds. Nothing is held then.
 */
public final class ThreadLock implements java.util.concurrent.locks.Lock {
  /** Nanoseconds: what is longer waits for so long, which is less than the sidecar's 10 years. */
  private static final long LONGEST = TimeUnit.DAYS.toNanos(3_650);

  private final Client client;
  private final String name;
  private final LockOptions options;
  private final ReentrantLock threads = new ReentrantLock(true);

  /** What the thread that has entered holds; only that thread looks. */
  private @Nullable Lock hold;

  ThreadLock(Client client, String name, LockOptions options) {
    this.client = client;
    this.name = name;
    this.options = options.waitTimeout(null);
  }

  /** Acquires a lock, in one of the ways to wait for it. */
  private interface Acquiring<E extends Exception> {
    Lock acquire() throws E;
  }

  /**
   * Waits until the thread holds the lock, even if it is interrupted; then it still is when this
   * returns.
   *
   * @throws LockLostException if the thread held it already, and it was lost
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  @Override
  public void lock() {
    threads.lock();
    enter(() -> Waiting.awaitAnyway(client.acquireAsync(name, options)));
  }

  /**
   * Waits until the thread holds the lock.
   *
   * @throws InterruptedException if the thread is interrupted; nothing is held then
   * @throws LockLostException if the thread held it already, and it was lost
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  @Override
  public void lockInterruptibly() throws InterruptedException {
    threads.lockInterruptibly();
    enter(() -> client.acquire(name, options));
  }

  /**
   * Takes the lock if the sidecar grants it at once, and waits for no more than the answer.
   *
   * @return whether the thread holds it
   * @throws LockLostException if the thread held it already, and it was lost
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  @Override
  public boolean tryLock() {
    LockOptions once = options.waitTimeout(Duration.ZERO);
    return threads.tryLock()
        && tryEnter(() -> Waiting.awaitAnyway(client.acquireAsync(name, once)));
  }

  /**
   * Waits until the thread holds the lock, for a limited time.
   *
   * @param time at most; with zero or less, it is tried once
   * @param unit of the time
   * @return whether the thread holds it
   * @throws InterruptedException if the thread is interrupted; nothing is held then
   * @throws LockLostException if the thread held it already, and it was lost
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    long end = System.nanoTime() + Math.min(unit.toNanos(time), LONGEST);
    return threads.tryLock(time, unit)
        && tryEnter(
            () -> {
              long left = Math.max(end - System.nanoTime(), 0);
              return client.acquire(name, options.waitTimeout(Duration.ofNanos(left)));
            });
  }

  private <E extends Exception> boolean tryEnter(Acquiring<E> acquiring) throws E {
    try {
      enter(acquiring);
      return true;
    } catch (LockHeldException | WaitTimeoutException others) {
      return false;
    }
  }

  /** Has the thread, which is the only one here, hold the lock, or leave. */
  private <E extends Exception> void enter(Acquiring<E> acquiring) throws E {
    boolean entered = false;
    try {
      if (threads.getHoldCount() > 1) {
        hold().check();
      } else {
        hold = acquiring.acquire();
      }
      entered = true;
    } finally {
      if (!entered) {
        threads.unlock();
      }
    }
  }

  /**
   * Gives the lock up if the thread has unlocked it as often as it has locked it. When this returns
   * then, the next waiter can have it. Whatever it throws but IllegalMonitorStateException, the
   * thread does not hold the lock any more.
   *
   * @throws IllegalMonitorStateException if another thread holds the lock, or none
   * @throws LockLostException if it was lost before: others may have had it meanwhile
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then others can have
   *     the lock by the time its validity would have been over
   */
  @Override
  public void unlock() {
    Lock ending = threads.getHoldCount() == 1 ? hold() : null;
    if (ending == null) {
      threads.unlock();
      return;
    }
    hold = null;
    try {
      ending.release();
    } finally {
      threads.unlock();
    }
  }

  /**
   * Says whether the thread holds the lock, and has not lost it.
   *
   * @return true only while no other thread or program can have it
   */
  public boolean isHeldByCurrentThread() {
    return threads.isHeldByCurrentThread() && hold().isValid();
  }

  /**
   * Says whether a thread holds this object, also where the lock was lost, or waits for it. By the
   * time the caller has the answer, that may have changed.
   *
   * @return whether a thread here would miss it
   */
  public boolean isInUse() {
    return threads.isLocked() || threads.hasQueuedThreads();
  }

  /**
   * Gives what the thread holds: with its fencing token, for how long it is valid, and guards for
   * what is written. Unlock it here.
   *
   * @return the hold, which may have been lost
   * @throws IllegalMonitorStateException if the thread does not hold the lock
   */
  public Lock hold() {
    Lock held = threads.isHeldByCurrentThread() ? hold : null;
    if (held == null) {
      throw new IllegalMonitorStateException("this thread does not hold lock " + name);
    }
    return held;
  }

  /**
   * Is not supported: a thread that waits for a condition would have to be woken by others, of
   * other programs.
   *
   * @return nothing
   * @throws UnsupportedOperationException always
   */
  @Override
  public Condition newCondition() {
    throw new UnsupportedOperationException("a lock of the sidecar has no conditions");
  }
}
