package io.sidekeeper;

/**
 * Work that is done once.
 *
 * @param <E> what it throws
 */
@FunctionalInterface
public interface OnceBody<E extends Exception> {
  /**
   * Does it. The thread is interrupted when the attempt is lost.
   *
   * @param attempt that has begun
   * @throws E what the caller gets
   * @throws InterruptedException if the thread is interrupted
   */
  void run(Attempt attempt) throws E, InterruptedException;
}
