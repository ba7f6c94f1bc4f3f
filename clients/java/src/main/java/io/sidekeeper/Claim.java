package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.lang.System.Logger;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What a caller has for as long as a stream lives and its validity runs. It ends once, with the
 * first cause given.
 *
 * <p>All claims of a client change under one monitor, so that the thread that ends the stream of
 * one knows that all that stands on it has ended too. Any thread may look without it.
 */
final class Claim {
  /** Before the first answer. */
  private static final long UNPROVEN = Long.MIN_VALUE / 2;

  private static final Logger LOG = System.getLogger("io.sidekeeper");

  final String what;

  /** Completed when it has ended. */
  final CompletableFuture<Void> ended = new CompletableFuture<>();

  private final Object monitor;
  private final BiFunction<String, SidekeeperException, LostException> loss;
  private final @Nullable Claim lender;
  private final List<Runnable> stops = new ArrayList<>();
  private final List<Runnable> listeners = new ArrayList<>();
  private final Set<Claim> dependents = new LinkedHashSet<>();
  private @Nullable BooleanSupplier carries;
  private Runnable cut = () -> {};
  private long asked;
  private volatile long until = UNPROVEN;
  private volatile boolean over;
  private volatile boolean suspended;
  private volatile @Nullable LostException lost;

  /** With a lender, it is valid for as long as that is. */
  Claim(
      Object monitor,
      String what,
      BiFunction<String, SidekeeperException, LostException> loss,
      @Nullable Claim lender) {
    this.monitor = monitor;
    this.what = what;
    this.loss = loss;
    this.lender = lender;
  }

  boolean isOver() {
    return over;
  }

  /** Says whether its validity is that of another claim. */
  boolean isLent() {
    return lender != null;
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

  /** Says that it is a lease, and whether anything is on its stream, or that is broken. */
  void carries(BooleanSupplier anything) {
    synchronized (monitor) {
      carries = anything;
    }
  }

  /**
   * For how many nanoseconds it is certainly the caller's; 0 if it is not. Then it has ended, and
   * says why. Exception: a lease on which nothing stands has not ended, since no caller counts on
   * it, and may be valid again.
   */
  long validFor() {
    if (lender != null) {
      long left = lender.validFor();
      return over ? 0 : left;
    }
    long end = until;
    if (over) {
      return 0;
    }
    long left = end - Clock.now();
    if (left <= 0 && end != UNPROVEN) {
      expire();
    }
    return over ? 0 : Math.max(left, 0);
  }

  /** Ends it if its time is over and anybody counts on it. */
  void expire() {
    synchronized (monitor) {
      boolean counted = carries == null || carries.getAsBoolean() || !dependents.isEmpty();
      if (counted && until <= Clock.now()) {
        lose(Keeper.outlived());
      }
    }
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
        call(cut);
      }
    }
  }

  /**
   * Has what the caller does stopped at its end, before any listener is called; at once if it is
   * over. It must be quick.
   */
  void stopsOver(Runnable stop) {
    callAtEnd(stops, stop);
  }

  /**
   * Has a listener called at its end, before the sidecar learns of it; at once if it is over. It
   * must be quick.
   */
  void whenOver(Runnable listener) {
    callAtEnd(listeners, listener);
  }

  private void callAtEnd(List<Runnable> calls, Runnable call) {
    synchronized (monitor) {
      if (over) {
        call(call);
      } else {
        calls.add(call);
      }
    }
  }

  /** What it throws, of whatever class, must not keep others from being called. */
  private void call(Runnable call) {
    try {
      call.run();
    } catch (Throwable failed) {
      LOG.log(Logger.Level.ERROR, "what follows the end of " + what + " failed", failed);
    }
  }

  /** Ends it as soon as another claim ends, before that one's stream does. */
  void dependsOn(Claim other) {
    synchronized (monitor) {
      other.dependents.add(this);
      whenOver(() -> other.dependents.remove(this));
      if (other.over) {
        lose(other.cause());
      }
    }
  }

  /** Says to what depends on it why it has ended. */
  SidekeeperException cause() {
    LostException own = lost;
    return own == null
        ? SidekeeperException.named("LEASE_CLOSED", "the lease is closed")
        : own.why();
  }

  /** Ends it and its stream since it is not the caller's any more. */
  void lose(SidekeeperException cause) {
    abandon(asLost(cause));
  }

  LostException asLost(SidekeeperException cause) {
    return loss.apply(what, cause);
  }

  /** Ends it and its stream. */
  void abandon(@Nullable LostException lost) {
    synchronized (monitor) {
      end(lost);
      call(cut);
    }
  }

  /**
   * Ends it and what depends on it, before it returns. Only then does the client end the stream:
   * this tells the sidecar, which gives all of it to others.
   */
  void end(@Nullable LostException lost) {
    List<Claim> ending = new ArrayList<>();
    synchronized (monitor) {
      markOver(lost, ending);
      ending.forEach(claim -> claim.callAll(claim.stops));
      for (Claim claim : ending) {
        claim.callAll(claim.listeners);
        if (claim != this) {
          claim.call(claim.cut);
        }
      }
    }
    ending.forEach(claim -> claim.ended.complete(null));
  }

  private void markOver(@Nullable LostException lost, List<Claim> ending) {
    if (over) {
      return;
    }
    this.lost = lost;
    over = true;
    ending.add(this);
    for (Claim dependent : dependents) {
      dependent.markOver(dependent.asLost(cause()), ending);
    }
  }

  private void callAll(List<Runnable> calls) {
    calls.forEach(this::call);
    calls.clear();
  }
}
