package io.sidekeeper;

/**
 * What is done at a tick of a schedule.
 *
 * @param <E> what it throws
 */
@FunctionalInterface
public interface TickBody<E extends Exception> {
  /**
   * Does it. The thread is interrupted when the tick is lost. The work has succeeded when this
   * returns: the client does not wait for a future that it has begun. Wait for it here.
   *
   * @param tick that has begun
   * @throws E what the caller gets
   * @throws InterruptedException if the thread is interrupted
   */
  void run(Tick tick) throws E, InterruptedException;
}
