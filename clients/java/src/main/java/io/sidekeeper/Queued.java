package io.sidekeeper;

import java.util.List;

/**
 * The contenders ahead of a caller in the queue of a lock.
 *
 * @param position how many are ahead; 0 while the delay of an earlier hold is kept
 * @param holders who holds the lock now, at most 16 of them
 */
public record Queued(int position, List<Contender> holders) {}
