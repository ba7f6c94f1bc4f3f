package io.sidekeeper;

import java.time.Duration;
import java.util.Optional;

/**
 * A caller or the sidecar asks the leader to resign soon.
 *
 * @param to the candidate that shall lead next; empty if the request names none
 * @param requestedBy who asks, as the sidecar knows it; empty if it does not
 * @param reason why, in the words of who asks
 * @param grace how long, from when this was told, until the term is ended by force; empty if it
 *     never will be
 */
public record YieldRequest(
    String to, String requestedBy, String reason, Optional<Duration> grace) {}
