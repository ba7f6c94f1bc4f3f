package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import java.time.Duration;

/**
 * Is told what becomes of permits, from the queue to their end.
 *
 * <p>The methods of one listener are called one at a time, in the order of the events, on threads
 * of the client that may wait. What they throw is logged.
 */
public interface PermitsListener {
  /**
   * There are not enough free permits, or others are ahead. Told at once, and later at most once a
   * second.
   *
   * @param position how many wait ahead: 0 for the first, who waits for free permits
   */
  default void queued(int position) {}

  /**
   * Contact with the ensemble is lost; the permits are not. Told again about once a second while it
   * lasts.
   *
   * @param remaining how long they are certainly still the caller's, from when the sidecar said so
   */
  default void suspended(Duration remaining) {}

  /** Contact is back; the permits were never lost. */
  default void resumed() {}

  /**
   * A caller or the sidecar asks the holder to release the permits soon.
   *
   * @param revocation who, why and until when
   */
  default void revocationRequested(Revocation revocation) {}

  /**
   * The permits were granted and are not the caller's any more.
   *
   * @param lost why
   */
  default void lost(LostException lost) {}
}
