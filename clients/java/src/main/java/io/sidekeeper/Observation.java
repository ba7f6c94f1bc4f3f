package io.sidekeeper;

import java.util.Optional;

/**
 * What is known of an election.
 *
 * @param leader empty if the election has no leader
 * @param stale whether another candidate may lead: contact with the ensemble, or with the sidecar,
 *     is lost
 */
public record Observation(Optional<Leader> leader, boolean stale) {}
