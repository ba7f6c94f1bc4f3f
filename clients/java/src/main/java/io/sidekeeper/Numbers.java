package io.sidekeeper;

import java.util.stream.LongStream;

/**
 * All numbers from first to last, both included.
 *
 * @param first the smallest
 * @param last the largest
 * @param incarnation of the sequence: the numbers of one incarnation are unique
 */
public record Numbers(long first, long last, long incarnation) {
  /**
   * Gives them one by one.
   *
   * @return the numbers in their order
   */
  public LongStream stream() {
    return LongStream.rangeClosed(first, last);
  }
}
