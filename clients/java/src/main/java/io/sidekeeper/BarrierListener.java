package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import java.time.Duration;

/**
 * Is told what becomes of a caller at a double barrier, until it has left.
 *
 * <p>The methods of one listener are called one at a time, in the order of the events, on threads
 * of the client that may wait. What they throw is logged.
 */
public interface BarrierListener {
  /**
   * There are not enough callers yet.
   *
   * @param present how many stand at the barrier, this one among them
   */
  default void waiting(int present) {}

  /**
   * Contact with the ensemble is lost; the entry is not. Told again about once a second while it
   * lasts.
   *
   * @param remaining how long the caller is certainly still inside, from when the sidecar said so
   */
  default void suspended(Duration remaining) {}

  /** Contact is back; the entry was never lost. */
  default void resumed() {}

  /**
   * The caller was inside and is not any more: the others do not wait for it.
   *
   * @param lost why
   */
  default void lost(LostException lost) {}
}
