package io.sidekeeper;

import java.time.Instant;
import java.util.Optional;

/**
 * A number that was lost, and that no caller gets for a while.
 *
 * @param number that a permit bore
 * @param until when it ends; empty if it begins only when the next caller wants a number
 */
public record Quarantine(int number, Optional<Instant> until) {
  static Quarantine of(io.sidekeeper.semaphore.v1.Quarantine wire) {
    Optional<Instant> until =
        wire.hasUntil() ? Optional.of(Wire.instant(wire.getUntil())) : Optional.empty();
    return new Quarantine(wire.getNumber(), until);
  }
}
