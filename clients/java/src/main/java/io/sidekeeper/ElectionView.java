package io.sidekeeper;

import io.sidekeeper.election.v1.GetResponse;
import java.util.List;
import java.util.Optional;

/**
 * The leader of an election, and its candidates.
 *
 * @param leader empty if the election has no leader
 * @param candidates in the order of their turn
 * @param candidatesOmitted how many more wait that are not shown
 */
public record ElectionView(
    Optional<Leader> leader, List<Candidate> candidates, int candidatesOmitted) {
  static ElectionView of(GetResponse wire) {
    return new ElectionView(
        wire.hasLeader() ? Optional.of(Leader.of(wire.getLeader())) : Optional.empty(),
        wire.getCandidatesList().stream().map(Candidate::of).toList(),
        wire.getCandidatesOmitted());
  }
}
