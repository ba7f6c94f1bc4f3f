package io.sidekeeper;

/**
 * What is done while a lock is held.
 *
 * @param <T> what it gives
 * @param <E> what it throws
 */
@FunctionalInterface
public interface Body<T, E extends Exception> {
  /**
   * Does it. The thread is interrupted when the lock is lost, or suspended for longer than the
   * caller allows.
   *
   * @param lock that is held
   * @return what the caller gets
   * @throws E what the caller gets
   * @throws InterruptedException if the thread is interrupted
   */
  T run(Lock lock) throws E, InterruptedException;
}
