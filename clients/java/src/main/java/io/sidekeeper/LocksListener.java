package io.sidekeeper;

import io.sidekeeper.errors.LockLostException;
import java.time.Duration;
import java.util.Map;

/**
 * Is told what becomes of several locks, from the queues to their end.
 *
 * <p>The methods of one listener are called one at a time, in the order of the events, on threads
 * of the client that may wait. What they throw is logged.
 */
public interface LocksListener {
  /**
   * The caller has to wait. Told at once, and later at most once a second.
   *
   * @param ahead how many, at least 1, by the names of the locks that are still waited for
   */
  default void queued(Map<String, Integer> ahead) {}

  /**
   * Contact with the ensemble is lost; the locks are not. Told again about once a second while it
   * lasts.
   *
   * @param remaining how long the locks are certainly still the caller's, from when the sidecar
   *     said so
   */
  default void suspended(Duration remaining) {}

  /** Contact is back; the locks were never lost. */
  default void resumed() {}

  /**
   * A caller or the sidecar asks the holder to release any of the locks soon, and so all of them.
   *
   * @param revocation who, why and until when
   */
  default void revocationRequested(Revocation revocation) {}

  /**
   * The locks were granted and are not the caller's any more.
   *
   * @param lost why
   */
  default void lost(LockLostException lost) {}
}
