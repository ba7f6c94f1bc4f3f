package io.sidekeeper.fence;

/**
 * Remembers the largest fencing token of each lock. All instances of a service that guard the same
 * thing share one, and it outlives them: what it forgets lets a late call pass.
 */
@FunctionalInterface
public interface Store {
  /**
   * Makes a token the mark of a lock if it is larger. When it returns, the mark is as durable as
   * the store makes it. Of two calls at once, one sees the mark of the other.
   *
   * @param lock the lock's name
   * @param token the fencing token
   * @return the mark: the token itself, or a larger one
   * @throws Exception if that cannot be done
   */
  long raise(String lock, long token) throws Exception;
}
