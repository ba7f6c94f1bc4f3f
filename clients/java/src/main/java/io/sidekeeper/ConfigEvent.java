package io.sidekeeper;

import java.time.Duration;
import java.util.List;

/**
 * One piece of news of a watch of the configuration.
 *
 * @param kind what has happened
 * @param changes with STATE, all there is; with CHANGED, what has changed
 * @param age with STALE, for how long the sidecar had not been heard when that was noticed; zero if
 *     that is unknown
 */
public record ConfigEvent(Kind kind, List<ConfigChange> changes, Duration age) {
  ConfigEvent(Kind kind, List<ConfigChange> changes) {
    this(kind, changes, Duration.ZERO);
  }

  /** What has happened. */
  public enum Kind {
    /**
     * What there is at the beginning, whole, so that everything told before is out of date, also
     * after the sidecar was away.
     */
    STATE,
    /** Something has changed. */
    CHANGED,
    /** The ensemble or the sidecar is out of contact, so that earlier events may be out of date. */
    STALE,
    /** Contact is back, and what happened meanwhile has been told. */
    FRESH
  }
}
