package io.sidekeeper;

import io.sidekeeper.election.v1.WatchResponse;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What is known of an election, message by message. */
final class Observer {
  private @Nullable Observation last;
  private long newest;

  /**
   * What to tell of a message, or of the end of the stream, for which it is null; null if nothing.
   * An earlier term than one that was seen says nothing but that it is out of date.
   */
  @Nullable Observation learn(@Nullable WatchResponse message) {
    Observation before = last;
    if (message == null
        ? before == null || before.stale()
        : message.getEventCase().getNumber() == 0) {
      return null;
    }
    Optional<Leader> leader =
        message != null && message.hasLeader()
            ? Optional.of(Leader.of(message.getLeader()))
            : Optional.empty();
    long term = leader.map(found -> found.term().fencingToken()).orElse(newest);
    boolean stale = message == null || message.hasStale() || term < newest;
    if (!stale) {
      newest = term;
    } else {
      leader = before == null ? Optional.empty() : before.leader();
    }
    last = new Observation(leader, stale);
    return last;
  }
}
