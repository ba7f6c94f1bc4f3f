package io.sidekeeper;

import java.util.List;

/**
 * Who is ahead in the queue of a lock.
 *
 * @param position how many are ahead, at least 1
 * @param holders who holds the lock now, at most 16 of them
 */
public record Queued(int position, List<Contender> holders) {}
