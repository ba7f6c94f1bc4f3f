package io.sidekeeper;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;
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
  /**
   * After how long without a message the sidecar counts as away. A sidecar that sends no
   * keepalives, as an older one, is never taken for silent.
   */
  static final Duration SILENCE = Duration.ofSeconds(15);

  /** What requests ask for, to hear five messages in that time. */
  static final com.google.protobuf.Duration KEEPALIVE = Wire.duration(SILENCE.dividedBy(5));

  /** Says whether a message says no more than that its stream is served. */
  static boolean isKeepalive(Message message) {
    FieldDescriptor field = message.getDescriptorForType().findFieldByName("keepalive");
    return field != null && message.hasField(field);
  }

  /** A request whose stream is to send something every few seconds, so that no proxy cuts it. */
  @SuppressWarnings("unchecked") // a builder builds what it comes from
  static <Q extends Message> Q withKeepalive(Q request) {
    FieldDescriptor field = request.getDescriptorForType().findFieldByName("keepalive");
    return (Q) request.toBuilder().setField(field, KEEPALIVE).build();
  }

  private final Calls calls;
  private final Workers workers;
  private final Duration patience;
  private final Runnable reopen;
  private final Pause pause = new Pause();
  private final Runnable forget;
  private final Queue<T> news = new ArrayDeque<>();
  private CompletableFuture<Void> arrival = new CompletableFuture<>();
  private @Nullable Reading<?> reading;
  private @Nullable SidekeeperException failure;
  private boolean owed;
  private boolean closed;

  /** Makes news of what a stream sends. */
  interface Tell<R, T> {
    /**
     * Makes news of a message, or null for nothing; of null, when the stream has ended and begins
     * anew, after the sidecar was silent for that long, or for a time that is unknown, as zero.
     */
    @Nullable T of(@Nullable R message, Duration silent);
  }

  <Q extends Message, R extends Message> Watch(
      Core core, MethodDescriptor<Q, R> method, Q request, Tell<R, T> tell) {
    this(core.calls, core.workers, SILENCE, method, request, tell);
  }

  <Q extends Message, R extends Message> Watch(
      Calls calls,
      Workers workers,
      Duration patience,
      MethodDescriptor<Q, R> method,
      Q request,
      Tell<R, T> tell) {
    this.calls = calls;
    this.workers = workers;
    this.patience = patience;
    this.reopen = () -> open(method, request, tell);
    this.forget = calls.atClose(() -> fail(Calls.closed()));
    reopen.run();
  }

  private <Q extends Message, R extends Message> void open(
      MethodDescriptor<Q, R> method, Q request, Tell<R, T> tell) {
    synchronized (news) {
      if (!closed && failure == null) {
        Reading<R> begun = new Reading<>(tell);
        reading = begun;
        begun.stream = calls.open(method, request, true, begun::take, begun::end);
      }
    }
  }

  private void more() {
    if (reading != null) {
      reading.more();
    }
  }

  /** One stream, as long as it is the newest. */
  private final class Reading<R extends Message> {
    private final Tell<R, T> tell;
    private Calls.@Nullable Stream<?> stream;
    private @Nullable Long heard; // only of a sidecar that sends keepalives
    private Runnable patient = () -> {}; // takes back what ends it in silence
    private boolean spoken; // whether the sidecar was heard at all
    private boolean over;

    Reading(Tell<R, T> tell) {
      this.tell = tell;
    }

    void take(R message) {
      synchronized (news) {
        patient.run();
        if (over) {
          return;
        }
        boolean keepalive = isKeepalive(message);
        if (keepalive || heard != null) {
          heard = Clock.before();
        }
        spoken = true;
        if (!keepalive) {
          pause.reset();
        }
        T told = keepalive ? null : tell.of(message, Duration.ZERO);
        if (told == null) {
          more();
        } else {
          owed = true; // one more, when this one is taken
          add(told);
        }
      }
    }

    void more() {
      if (stream != null) {
        stream.more();
      }
      if (heard != null) {
        patient = workers.after(patience, this::silent);
      }
    }

    private void silent() {
      end(new SidekeeperException(Status.Code.UNAVAILABLE, "", new Told("the sidecar is silent")));
      cancel(); // after the end, or the end would be that it was cancelled
    }

    void cancel() {
      if (stream != null) {
        stream.cancel();
      }
    }

    void end(@Nullable SidekeeperException end) {
      synchronized (news) {
        patient.run();
        if (!over) {
          over = true;
          Watch.this.end(end, spoken, () -> tell.of(null, silence()));
        }
      }
    }

    private Duration silence() {
      return heard == null ? Duration.ZERO : Duration.ofNanos(Clock.now() - heard);
    }
  }

  private void add(T told) {
    news.add(told);
    arrival.complete(null);
  }

  private void end(@Nullable SidekeeperException end, boolean heard, Supplier<@Nullable T> last) {
    SidekeeperException why =
        end == null
            ? new SidekeeperException(
                Status.Code.UNAVAILABLE, "", new Told("the sidecar ended the stream"))
            : end;
    if (!Calls.mayHeal(why, heard)) {
      fail(why);
      return;
    }
    synchronized (news) {
      owed = false;
      T told = last.get();
      if (told != null) {
        add(told);
      }
    }
    workers.after(pause.next(), reopen);
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
    workers.run(
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
      if (reading != null) {
        reading.patient.run();
        reading.cancel();
      }
    }
  }
}
