package io.sidekeeper;

import java.util.Map;

/**
 * The leader of an election.
 *
 * @param candidate as it was given; of one that is foreign, what it wrote about itself, if that is
 *     text
 * @param value as it was given, or proclaimed since
 * @param term names the term; its fencing token numbers it
 * @param metadata as it was given
 * @param identity of its caller, as the sidecar that made it verified it; empty where callers are
 *     not told apart
 * @param foreign whether it is a client of the ensemble that is not Sidekeeper's
 * @param yieldRequested whether it was asked to yield
 */
public record Leader(
    String candidate,
    String value,
    Ticket term,
    Map<String, String> metadata,
    String identity,
    boolean foreign,
    boolean yieldRequested) {
  static Leader of(io.sidekeeper.election.v1.Leader wire) {
    return new Leader(
        wire.getCandidate(),
        wire.getValue(),
        new Ticket(wire.getTicket().getLock(), wire.getTicket().getFencingToken()),
        wire.getMetadataMap(),
        wire.getIdentity(),
        wire.getForeign(),
        wire.getYieldRequested());
  }
}
