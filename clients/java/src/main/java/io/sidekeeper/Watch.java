package io.sidekeeper;

import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What a watch tells, one after the other, also across restarts of the sidecar. It has no end of
 * its own: close it.
 *
 * <p>It is for one reader at a time. News that it is too late for are left out by the sidecar,
 * which tells the newest.
 *
 * @param <T> what is told
 */
public final class Watch<T> implements Iterator<T>, AutoCloseable {
  private final Core core;
  private final Runnable reopen;
  private final Pause pause = new Pause();
  private final Runnable forget;
  private final Queue<T> news = new ArrayDeque<>();
  private CompletableFuture<Void> arrival = new CompletableFuture<>();
  private Calls.@Nullable Stream<?> stream;
  private @Nullable SidekeeperException failure;
  private boolean owed;
  private boolean closed;

  /**
   * Makes news of the messages, with null for nothing; of null, when the stream has ended and
   * begins anew.
   */
  <Q, R> Watch(
      Core core,
      MethodDescriptor<Q, R> method,
      Q request,
      Function<@Nullable R, @Nullable T> tell) {
    this.core = core;
    this.reopen = () -> open(method, request, tell);
    this.forget = core.calls.atClose(() -> fail(Calls.closed()));
    reopen.run();
  }

  private <Q, R> void open(
      MethodDescriptor<Q, R> method, Q request, Function<@Nullable R, @Nullable T> tell) {
    synchronized (news) {
      if (closed || failure != null) {
        return;
      }
      stream =
          core.calls.open(
              method,
              request,
              true,
              message -> take(tell.apply(message)),
              end -> end(end, tell.apply(null)));
    }
  }

  private void take(@Nullable T told) {
    synchronized (news) {
      pause.reset();
      if (told == null) {
        more();
      } else {
        owed = true; // one more, when this one is taken
        add(told);
      }
    }
  }

  private void more() {
    if (stream != null) {
      stream.more();
    }
  }

  private void add(T told) {
    news.add(told);
    arrival.complete(null);
  }

  private void end(@Nullable SidekeeperException end, @Nullable T told) {
    SidekeeperException why =
        end == null
            ? new SidekeeperException(
                Status.Code.UNAVAILABLE, "", new Told("the sidecar ended the stream"))
            : end;
    if (!why.isTransient()) {
      fail(why);
      return;
    }
    synchronized (news) {
      owed = false;
      if (told != null) {
        add(told);
      }
    }
    core.workers.after(pause.next(), reopen);
  }

  private void fail(SidekeeperException why) {
    synchronized (news) {
      if (failure == null) {
        failure = why;
      }
      arrival.complete(null);
    }
  }

  /**
   * Waits for news.
   *
   * @return true when there are some; false when the watch was closed
   * @throws CancellationException if the thread is interrupted, and stays so
   * @throws SidekeeperException if the sidecar refuses the watch
   */
  @Override
  public boolean hasNext() {
    try {
      return awaitNext();
    } catch (InterruptedException interrupted) {
      throw Waiting.interrupted(interrupted);
    }
  }

  private boolean awaitNext() throws InterruptedException {
    while (true) {
      CompletableFuture<Void> next;
      synchronized (news) {
        if (closed) {
          return false;
        }
        if (!news.isEmpty()) {
          return true;
        }
        if (failure != null) {
          throw failure.again();
        }
        arrival = arrival.isDone() ? new CompletableFuture<>() : arrival;
        next = arrival;
      }
      Waiting.await(next.copy());
    }
  }

  /**
   * Waits for news and gives them.
   *
   * @return what is told
   * @throws NoSuchElementException if the watch was closed
   * @throws CancellationException if the thread is interrupted, and stays so
   * @throws SidekeeperException if the sidecar refuses the watch
   */
  @Override
  public T next() {
    try {
      return take();
    } catch (InterruptedException interrupted) {
      throw Waiting.interrupted(interrupted);
    }
  }

  /**
   * Does the same as {@link #next}, for those who take interrupts as they are.
   *
   * @return what is told
   * @throws InterruptedException if the thread is interrupted
   * @throws NoSuchElementException if the watch was closed
   * @throws SidekeeperException if the sidecar refuses the watch
   */
  public T take() throws InterruptedException {
    while (awaitNext()) {
      synchronized (news) {
        T told = news.poll();
        if (told != null) {
          if (owed && news.isEmpty()) {
            owed = false;
            more();
          }
          return told;
        }
      }
    }
    throw new NoSuchElementException("the watch is closed");
  }

  /**
   * Has a listener told, on a thread of the client, from now on instead of the reader.
   *
   * @param listener is called with one after the other; when it throws, the watch is closed
   * @return a stage that is completed when the watch was closed, and fails if the sidecar refuses
   *     it or the listener throws
   */
  public CompletableFuture<Void> listen(Consumer<? super T> listener) {
    CompletableFuture<Void> done = new CompletableFuture<>();
    core.workers.run(
        () -> {
          try (this) {
            forEachRemaining(listener);
            done.complete(null);
          } catch (RuntimeException failed) {
            done.completeExceptionally(failed);
          }
        });
    return done;
  }

  /** Ends it. Again, it does nothing. */
  @Override
  public void close() {
    forget.run();
    synchronized (news) {
      closed = true;
      arrival.complete(null);
      if (stream != null) {
        stream.cancel();
      }
    }
  }
}
