package io.sidekeeper;

/**
 * What is done while several locks are held.
 *
 * @param <T> what it gives
 * @param <E> what it throws
 */
@FunctionalInterface
public interface LocksBody<T, E extends Exception> {
  /**
   * Does it. The thread is interrupted when the locks are lost, or suspended for longer than the
   * caller allows.
   *
   * @param locks that are held
   * @return what the caller gets
   * @throws E what the caller gets
   * @throws InterruptedException if the thread is interrupted
   */
  T run(Locks locks) throws E, InterruptedException;
}
