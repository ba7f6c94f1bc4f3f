package io.sidekeeper;

import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * A copy of a part of the configuration that follows it, and says how old it may be. Any thread may
 * look; what it sees is what was stored, key by key.
 */
public final class ConfigView implements AutoCloseable {
  private final Watch<ConfigEvent> watch;
  private final CompletableFuture<Void> complete = new CompletableFuture<>();
  private final List<Runnable> listeners = new CopyOnWriteArrayList<>();
  private Map<String, Entry> known = new TreeMap<>();
  private @Nullable Long staleSince;
  private @Nullable SidekeeperException failure;
  private boolean closed;

  private ConfigView(Watch<ConfigEvent> watch) {
    this.watch = watch;
  }

  static ConfigView of(Watch<ConfigEvent> watch) throws InterruptedException {
    ConfigView view = new ConfigView(watch);
    watch.listen(view::take).whenComplete((nothing, why) -> view.end(why));
    try {
      Waiting.await(view.complete.copy());
      return view;
    } catch (InterruptedException | RuntimeException refused) {
      view.close();
      throw refused;
    }
  }

  /**
   * Looks for a key.
   *
   * @param key to look for
   * @return its entry; empty if there is none
   */
  public synchronized Optional<Entry> get(String key) {
    return Optional.ofNullable(known.get(key));
  }

  /**
   * Copies the entries as they are now.
   *
   * @return entries by their keys
   */
  public synchronized Map<String, Entry> entries() {
    return new TreeMap<>(known);
  }

  /**
   * Says how old the copy may be.
   *
   * @return for how long the ensemble or the sidecar has been out of contact; zero while the copy
   *     follows. A silent sidecar is noticed after 15 seconds, and the age counts from when it was
   *     last heard
   */
  public synchronized Duration age() {
    return staleSince == null
        ? Duration.ZERO
        : Duration.ofNanos(Math.max(Clock.now() - staleSince, 1));
  }

  /**
   * Says why the copy follows no more.
   *
   * @return empty while it does, and when it was closed
   */
  public synchronized Optional<SidekeeperException> error() {
    return Optional.ofNullable(failure);
  }

  /**
   * Has a listener called on a thread of the client whenever something has changed, or the copy
   * follows no more. It must not throw.
   *
   * @param listener to call
   * @return what ends that
   */
  public Runnable onChange(Runnable listener) {
    Runnable own = () -> listener.run(); // one of its own for each call of this method
    listeners.add(own);
    return () -> listeners.remove(own);
  }

  /** Ends it. What it shows stays, and grows old. */
  @Override
  public void close() {
    listeners.clear();
    synchronized (this) {
      closed = true;
    }
    watch.close();
  }

  private void take(ConfigEvent event) {
    synchronized (this) {
      switch (event.kind()) {
        case STALE -> grow(event.age());
        case STATE -> known = new TreeMap<>();
        case CHANGED, FRESH -> {}
      }
      for (ConfigChange change : event.changes()) {
        if (change.deleted()) {
          known.remove(change.entry().key());
        } else {
          known.put(change.entry().key(), change.entry());
        }
      }
      if (event.kind() == ConfigEvent.Kind.STATE || event.kind() == ConfigEvent.Kind.FRESH) {
        staleSince = null;
      }
    }
    if (event.kind() == ConfigEvent.Kind.STATE) {
      complete.complete(null);
    }
    if (event.kind() == ConfigEvent.Kind.STATE || event.kind() == ConfigEvent.Kind.CHANGED) {
      tell();
    }
  }

  private void grow(Duration age) {
    if (staleSince == null) {
      staleSince = Clock.before() - age.toNanos();
    }
  }

  private void end(@Nullable Throwable why) {
    synchronized (this) {
      grow(Duration.ZERO);
      if (!closed && why instanceof SidekeeperException known) {
        failure = known;
      }
    }
    complete.completeExceptionally(why == null ? Calls.closed() : why);
    tell();
  }

  private void tell() {
    new ArrayList<>(listeners).forEach(Runnable::run);
  }
}
