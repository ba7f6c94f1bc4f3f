package io.sidekeeper;

import java.lang.System.Logger;
import java.util.ArrayDeque;
import java.util.Queue;

/** Calls what callers wrote one at a time, in the order of the events. */
final class Serial {
  private static final Logger LOG = System.getLogger("io.sidekeeper");

  private final Workers workers;
  private final Queue<Runnable> waiting = new ArrayDeque<>();
  private boolean running;

  Serial(Workers workers) {
    this.workers = workers;
  }

  void run(Runnable task) {
    synchronized (waiting) {
      waiting.add(task);
      if (running) {
        return;
      }
      running = true;
    }
    workers.run(this::drain);
  }

  private void drain() {
    while (true) {
      Runnable task;
      synchronized (waiting) {
        task = waiting.poll();
        if (task == null) {
          running = false;
          return;
        }
      }
      try {
        task.run();
      } catch (RuntimeException failed) {
        LOG.log(Logger.Level.ERROR, "a listener failed", failed);
      }
    }
  }
}
