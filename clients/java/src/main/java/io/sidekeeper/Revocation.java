package io.sidekeeper;

import java.time.Duration;
import java.util.Optional;

/**
 * A caller or the sidecar asks the holder to release the lock soon.
 *
 * @param requestedBy who asks, as the sidecar knows it; empty if it does not
 * @param reason why, in the words of who asks
 * @param grace how long, from when this was told, until the hold is ended by force; empty if it
 *     never will be
 */
public record Revocation(String requestedBy, String reason, Optional<Duration> grace) {}
