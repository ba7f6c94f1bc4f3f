package io.sidekeeper;

import java.time.Duration;
import java.util.Map;

/**
 * A candidate that waits to lead an election.
 *
 * @param candidate as it was given; of one that is foreign, what it wrote about itself, if that is
 *     text
 * @param value as it was given
 * @param metadata as it was given
 * @param identity of its caller, as the sidecar that made it verified it; empty where callers are
 *     not told apart
 * @param foreign whether it is a client of the ensemble that is not Sidekeeper's
 * @param age how long it has waited, by the ensemble's clock
 */
public record Candidate(
    String candidate,
    String value,
    Map<String, String> metadata,
    String identity,
    boolean foreign,
    Duration age) {
  static Candidate of(io.sidekeeper.election.v1.Candidate wire) {
    return new Candidate(
        wire.getCandidate(),
        wire.getValue(),
        wire.getMetadataMap(),
        wire.getIdentity(),
        wire.getForeign(),
        Wire.duration(wire.getAge()));
  }
}
