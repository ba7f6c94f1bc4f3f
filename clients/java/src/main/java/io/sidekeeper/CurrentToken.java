package io.sidekeeper;

/**
 * What a lock is held with.
 *
 * @param lock the lock's name
 * @param fencingToken that of the first holder; 0 if the lock has no holder
 * @param stale whether the token may be out of date, as the sidecar or the ensemble is away
 */
public record CurrentToken(String lock, long fencingToken, boolean stale) {}
