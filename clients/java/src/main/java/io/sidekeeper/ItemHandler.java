package io.sidekeeper;

/** Works on an item of a set. */
@FunctionalInterface
public interface ItemHandler {
  /**
   * Works until it is told to stop: its thread is interrupted, and {@link Item#shouldStop} says so.
   * The item's lock is released when this has returned or thrown, however long that takes. What
   * ends earlier begins again after a pause.
   *
   * @param item that the caller works on
   * @throws Exception what the listener is told
   */
  void handle(Item item) throws Exception;
}
