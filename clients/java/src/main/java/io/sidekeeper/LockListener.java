package io.sidekeeper;

import io.sidekeeper.errors.LockLostException;
import java.time.Duration;

/**
 * Is told what becomes of a lock, from the queue to its end.
 *
 * <p>The methods of one listener are called one at a time, in the order of the events, on threads
 * of the client that may wait. What they throw is logged.
 */
public interface LockListener {
  /**
   * The caller has to wait. Told at once, and later at most once a second.
   *
   * @param queued who is ahead
   */
  default void queued(Queued queued) {}

  /**
   * Contact with the ensemble is lost; the lock is not. Told again about once a second while it
   * lasts.
   *
   * @param remaining how long the lock is certainly still the caller's, from when the sidecar said
   *     so
   */
  default void suspended(Duration remaining) {}

  /** Contact is back; the lock was never lost. */
  default void resumed() {}

  /**
   * A caller or the sidecar asks the holder to release the lock soon.
   *
   * @param revocation who, why and until when
   */
  default void revocationRequested(Revocation revocation) {}

  /**
   * The lock was granted and is not the caller's any more.
   *
   * @param lost why
   */
  default void lost(LockLostException lost) {}
}
