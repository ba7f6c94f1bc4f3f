package io.sidekeeper;

import java.time.Instant;
import java.util.Optional;

/**
 * What a claim says of itself, for people.
 *
 * @param reason why the lock is claimed
 * @param until until when, by the clock of the sidecar that has granted or extended it; empty while
 *     it waits
 */
public record Reservation(String reason, Optional<Instant> until) {}
