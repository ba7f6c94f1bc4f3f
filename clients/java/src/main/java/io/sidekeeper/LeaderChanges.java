package io.sidekeeper;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Leaves out views of a lock in which the leader is the same. */
final class LeaderChanges {
  private @Nullable Long told;

  /** Gives the leader, empty if there is none, and null for nothing new. */
  @SuppressWarnings("NullableOptional")
  @Nullable Optional<Contender> of(@Nullable LockView view) {
    if (view == null || view.stale()) {
      return null;
    }
    Optional<Contender> leader = view.leader();
    long token = leader.map(Contender::fencingToken).orElse(Long.MIN_VALUE);
    if (told != null && told == token) {
      return null;
    }
    told = token;
    return leader;
  }
}
