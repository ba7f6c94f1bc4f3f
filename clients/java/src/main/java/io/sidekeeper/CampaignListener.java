package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import java.time.Duration;
import java.util.Optional;

/**
 * Is told what becomes of a candidacy, from the queue to the end of the term.
 *
 * <p>The methods of one listener are called one at a time, in the order of the events, on threads
 * of the client that may wait. What they throw is logged.
 */
public interface CampaignListener {
  /**
   * Others are ahead. Told at once, and later at most once a second.
   *
   * @param position how many are ahead, the leader among them
   * @param leader as it was first seen; empty if it is not known
   */
  default void candidate(int position, Optional<Leader> leader) {}

  /**
   * Contact with the ensemble is lost; leadership is not. Told again about once a second while it
   * lasts.
   *
   * @param remaining how long the caller certainly still leads, from when the sidecar said so
   */
  default void suspended(Duration remaining) {}

  /** Contact is back; leadership was never lost. */
  default void resumed() {}

  /**
   * A caller or the sidecar asks the leader to resign soon.
   *
   * @param request for whom, who, why and until when
   */
  default void yieldRequested(YieldRequest request) {}

  /**
   * The caller led and does not any more.
   *
   * @param lost why
   */
  default void lost(LostException lost) {}
}
