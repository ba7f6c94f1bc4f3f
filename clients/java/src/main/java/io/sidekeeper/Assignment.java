package io.sidekeeper;

import java.util.List;

/**
 * Says which items a member of a set shall work on.
 *
 * @param epoch larger for each later plan of the set; 0 before the first
 * @param items all items of the member, in the order of the set
 * @param members how many members the set has
 * @param total how many items the set has
 * @param unassigned how many items no member works on: the members' capacities are too small, or
 *     the next plan is not made yet
 */
public record Assignment(long epoch, List<String> items, int members, int total, int unassigned) {
  /**
   * Copies what it is given.
   *
   * @param epoch as described above
   * @param items as described above
   * @param members as described above
   * @param total as described above
   * @param unassigned as described above
   */
  public Assignment {
    items = List.copyOf(items);
  }
}
