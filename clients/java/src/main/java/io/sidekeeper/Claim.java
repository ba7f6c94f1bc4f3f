package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * What a caller has for as long as a stream lives and its validity runs: a hold, a lease or a
 * membership. It ends once, with the first cause given.
 *
 * <p>All claims of a client change under one monitor, so that whoever ends the stream of one knows
 * that all that stands on it has ended too. Any thread may look without it.
 */
final class Claim {
  /** Before the first answer; for ever, of a membership, whose lease's validity counts. */
  private static final long UNPROVEN = Long.MIN_VALUE / 2;

  final String what;

  /** Completed when it has ended. */
  final CompletableFuture<Void> ended = new CompletableFuture<>();

  private final Object monitor;
  private final BiFunction<String, SidekeeperException, LostException> kind;
  private final List<Runnable> listeners = new ArrayList<>();
  private final Map<Claim, Runnable> falls = new LinkedHashMap<>();
  private Runnable cut = () -> {};
  private long asked;
  private volatile long until = UNPROVEN;
  private volatile boolean over;
  private volatile boolean suspended;
  private volatile @Nullable LostException lost;

  Claim(Object monitor, String what, BiFunction<String, SidekeeperException, LostException> kind) {
    this.monitor = monitor;
    this.what = what;
    this.kind = kind;
  }

  boolean isOver() {
    return over;
  }

  boolean isSuspended() {
    return suspended;
  }

  void setSuspended(boolean suspended) {
    this.suspended = suspended;
  }

  @Nullable LostException lost() {
    return lost;
  }

  long until() {
    return until;
  }

  /** When it is due to be asked about again. */
  long due() {
    return asked + Keeper.patience(until - asked);
  }

  /**
   * For how many nanoseconds it is certainly the caller's; 0 if it is not: then it has ended, and
   * says why.
   */
  long validFor() {
    long end = until;
    if (over) {
      return 0;
    }
    long left = end - Clock.now();
    if (left <= 0 && end != UNPROVEN) {
      lose(Keeper.outlived());
    }
    return over ? 0 : Math.max(left, 0);
  }

  /**
   * Takes in an answer. One that came slowly may tell of an earlier end than one before; both are
   * true.
   */
  void prove(long asked, long validFor) {
    synchronized (monitor) {
      this.asked = asked;
      until = Math.max(until, asked + validFor);
    }
  }

  /** Says how to end its stream; at once if it is over. */
  void streamsOver(Runnable cut) {
    synchronized (monitor) {
      this.cut = cut;
      if (over) {
        cut.run();
      }
    }
  }

  /**
   * Has a listener called at its end, before the sidecar learns of it; at once if it is over. It
   * must be quick.
   */
  void whenOver(Runnable listener) {
    synchronized (monitor) {
      if (over) {
        listener.run();
      } else {
        listeners.add(listener);
      }
    }
  }

  /** Has fall called as soon as another claim ends, before that one's stream does. */
  void standOn(Claim ground, Runnable fall) {
    synchronized (monitor) {
      ground.falls.put(this, fall);
      whenOver(() -> ground.falls.remove(this));
      if (ground.over) {
        fall.run();
      }
    }
  }

  /** Ends it and its stream since it is not the caller's any more. */
  void lose(SidekeeperException cause) {
    abandon(asLost(cause));
  }

  LostException asLost(SidekeeperException cause) {
    return kind.apply(what, cause);
  }

  /** Ends it and its stream. */
  void abandon(@Nullable LostException lost) {
    synchronized (monitor) {
      end(lost);
      cut.run();
    }
  }

  /**
   * Ends it and what stands on it, before it returns: whoever ends the stream next tells the
   * sidecar, which gives all of it to others.
   */
  void end(@Nullable LostException lost) {
    synchronized (monitor) {
      if (over) {
        return;
      }
      this.lost = lost;
      over = true;
      List<Runnable> calls = new ArrayList<>(falls.values());
      falls.clear();
      calls.addAll(listeners);
      listeners.clear();
      calls.forEach(Runnable::run);
    }
    ended.complete(null);
  }
}
