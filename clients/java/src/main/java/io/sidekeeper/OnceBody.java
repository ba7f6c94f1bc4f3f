package io.sidekeeper;

/**
 * Work that is done once.
 *
 * @param <E> what it throws
 */
@FunctionalInterface
public interface OnceBody<E extends Exception> {
  /**
   * Does it. The thread is interrupted when the attempt is lost. The work has succeeded when this
   * returns: the client does not wait for a future that it has begun. Wait for it here.
   *
   * @param attempt that has begun
   * @throws E what the caller gets
   * @throws InterruptedException if the thread is interrupted
   */
  void run(Attempt attempt) throws E, InterruptedException;
}
