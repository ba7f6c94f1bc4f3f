package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/**
 * A holder of a lock, or a waiter for it.
 *
 * @param mode how it holds or wants the lock
 * @param owner who it is, for people
 * @param metadata more about it, for people
 * @param fencingToken the token it holds the lock with, or will hold it with
 * @param age how long it has been in the queue, by the ensemble's clock
 * @param foreign whether it is a client of the ensemble that is not Sidekeeper's
 * @param revocationRequested whether another caller has asked it to let go
 * @param identity its caller's, as the sidecar that made it verified it; empty where callers are
 *     not told apart
 * @param claim of a claim, which has no process; empty of others
 */
public record Contender(
    Mode mode,
    String owner,
    Map<String, String> metadata,
    long fencingToken,
    Duration age,
    boolean foreign,
    boolean revocationRequested,
    String identity,
    Optional<Reservation> claim) {}
