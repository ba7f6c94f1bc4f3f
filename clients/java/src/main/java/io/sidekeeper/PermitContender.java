package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import java.util.OptionalInt;

/**
 * A holder of permits of a semaphore, or a waiter for some.
 *
 * @param permits that it holds; 0 if it waits
 * @param identity of its caller, as the sidecar that made it verified it; empty where callers are
 *     not told apart
 * @param owner as it was given; of one that is foreign, what it wrote about itself, if that is text
 * @param metadata as it was given
 * @param token of its permits; 0 if it waits
 * @param age how long it has held its permits, or waits, by the ensemble's clock
 * @param foreign whether it is a client of the ensemble that is not Sidekeeper's
 * @param revocationRequested whether another caller has asked it to release its permits
 * @param number that its permit bears; empty of one without a number, and while it waits
 */
public record PermitContender(
    int permits,
    String identity,
    String owner,
    Map<String, String> metadata,
    long token,
    Duration age,
    boolean foreign,
    boolean revocationRequested,
    OptionalInt number) {}
