package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Takes an item's lock and runs the handler, again and again, until it is told to stop. It ends
 * when the handler has ended.
 */
final class ItemWorker {
  private final Share share;
  private final Lease lease;
  private final String item;
  private final Thread thread;
  private final Share.Pauses pauses = new Share.Pauses();
  private volatile boolean stopping;
  private volatile @Nullable Item handled;

  ItemWorker(Share share, Lease lease, String item, Runnable ended) {
    this.share = share;
    this.lease = lease;
    this.item = item;
    thread =
        new Thread(
            () -> {
              try {
                work();
              } catch (InterruptedException stopped) {
                return; // in a pause
              } finally {
                ended.run();
              }
            },
            "sidekeeper-item-" + share.set + "/" + item);
    thread.setDaemon(true);
    thread.start();
  }

  /** Tells the handler to stop; what it has not begun yet is given up. */
  void stop() {
    stopping = true;
    Item item = handled;
    if (item != null) {
      item.stop();
    }
    thread.interrupt();
  }

  private void work() throws InterruptedException {
    while (!stopping) {
      long lasted = 0;
      try {
        Lock lock = share.client.acquire(share.set + "/" + item, options());
        long began = System.nanoTime();
        try {
          handle(new Item(share.set, item, lock, thread));
        } finally {
          lasted = System.nanoTime() - began;
        }
      } catch (Throwable failed) { // whatever it is, the others go on
        tell(failed);
      }
      handled = null;
      Thread.interrupted(); // of this run: what stops the worker has said so before
      if (!stopping) {
        pauses.rest(lasted);
      }
    }
  }

  private LockOptions options() {
    Map<String, String> metadata = new HashMap<>(share.options.metadata());
    metadata.put("member", share.member);
    LockListener listener =
        new LockListener() {
          @Override
          public void revocationRequested(Revocation revocation) {
            Item asked = handled;
            if (asked != null && asked.lock().revocation().isPresent()) { // and not of a run before
              asked.stop();
            }
          }
        };
    return new LockOptions()
        .lease(lease)
        .owner(share.options.owner())
        .metadata(metadata)
        .listener(listener);
  }

  private void handle(Item item) throws Exception {
    handled = item;
    if (stopping || item.lock().revocation().isPresent()) {
      item.stop();
    }
    try {
      Bodies.<Lock, Boolean, Exception>run(
          item.lock(),
          lock -> {
            share.handler.handle(item);
            return true;
          });
    } finally {
      item.end();
    }
  }

  private void tell(Throwable failed) {
    Item item = handled;
    boolean told = stopping || (item != null && item.isTold());
    boolean stopped = told && failed instanceof InterruptedException;
    if (!stopped && !(failed instanceof LostException) && !lease.claim.isOver()) {
      share.tell(this.item, failed);
    }
  }
}
