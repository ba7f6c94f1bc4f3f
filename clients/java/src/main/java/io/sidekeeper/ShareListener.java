package io.sidekeeper;

import java.lang.System.Logger;

/**
 * Is told what becomes of a share.
 *
 * <p>The methods of one listener are called one at a time, on threads of the client that may wait.
 * What they throw is logged.
 */
public interface ShareListener {
  /**
   * The member's items have changed.
   *
   * @param assignment the items
   */
  default void assigned(Assignment assignment) {}

  /**
   * A handler has thrown, or the lock of its item cannot be had, or the membership was lost. It
   * begins again. By default this is logged.
   *
   * @param item the item's name; empty for the membership
   * @param failure why
   */
  default void failed(String item, Throwable failure) {
    String what = item.isEmpty() ? "the membership" : "the item " + item;
    System.getLogger("io.sidekeeper").log(Logger.Level.ERROR, what + " begins again", failure);
  }
}
