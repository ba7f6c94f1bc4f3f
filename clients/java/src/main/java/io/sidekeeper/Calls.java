package io.sidekeeper;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.sidekeeper.errors.EnsembleUnreachableException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Calls of the sidecar, whose errors are this package's. */
final class Calls {
  /** What a call with one answer may take, retries included. */
  static final Duration TIMEOUT = Duration.ofSeconds(10);

  /** What a call may take that waits for others: as long as any wait. */
  static final Duration LONGEST = Duration.ofDays(3650);

  private final Channel channel;
  private final String address;
  private final Workers workers;
  private final Set<Runnable> atClose = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  Calls(Channel channel, String address, Workers workers) {
    this.channel = channel;
    this.address = address;
    this.workers = workers;
  }

  /** Has all further calls fail, and those that rest before they are repeated. */
  void close() {
    closed = true;
    List.copyOf(atClose).forEach(Runnable::run);
    atClose.clear();
  }

  /** Has a task run when the client is closed, at once if it is. Returns what takes it back. */
  Runnable atClose(Runnable task) {
    Runnable own = () -> task.run(); // one of its own, whatever the equality of tasks
    atClose.add(own);
    if (closed) {
      own.run();
    }
    return () -> atClose.remove(own);
  }

  /** Gives a future to a caller. */
  <T> CompletableFuture<T> hand(CompletableFuture<T> inner) {
    return workers.hand(inner);
  }

  boolean isClosed() {
    return closed;
  }

  /** Is the error of whatever a client is asked for, or has, that is closed. */
  static SidekeeperException closed() {
    return new SidekeeperException(Status.Code.CANCELLED, "", new Told("the client is closed"));
  }

  /**
   * Says whether a stream may be opened again. Something between the two may have cut a stream over
   * which the sidecar was heard, such as a proxy. gRPC makes a status of that which has no reason.
   */
  static boolean mayHeal(SidekeeperException failed, boolean heard) {
    return failed.isTransient()
        || (heard && failed.reason().isEmpty() && CUT.contains(failed.code()));
  }

  private static final Set<Status.Code> CUT = EnumSet.of(Status.Code.INTERNAL, Status.Code.UNKNOWN);

  /**
   * Says whether what was asked for ended by itself before it was the caller's, such as when a
   * lease was lost: asked for anew, it may be granted.
   */
  static boolean wasCutShort(SidekeeperException failed) {
    return failed.code() == Status.Code.ABORTED;
  }

  private SidekeeperException failure(Status status, Metadata trailers) {
    if (closed) {
      return closed();
    }
    Status ended = broken(status);
    SidekeeperException told = SidekeeperException.of(ended, trailers);
    boolean unreached = told.code() == Status.Code.UNAVAILABLE && told.reason().isEmpty();
    return unreached ? SidekeeperException.of(explained(ended), trailers) : told;
  }

  /**
   * Gives a call whose connection was closed under it the code of a broken connection: gRPC has
   * UNKNOWN where it was closed before the call was written.
   */
  static Status broken(Status status) {
    return status.getCode() == Status.Code.UNKNOWN
            && status.getCause() instanceof ClosedChannelException closed
        ? Status.UNAVAILABLE.withDescription(status.getDescription()).withCause(closed)
        : status;
  }

  /** Says where no sidecar was reached, why not, and what to look at. */
  private Status explained(Status status) {
    Throwable cause = status.getCause();
    @Nullable String told = status.getDescription();
    String why = told == null ? status.getCode().name() : told;
    if (cause != null) { // of which gRPC says "io exception"
      why = cause.getMessage() == null ? cause.toString() : cause.getMessage();
    }
    return status.withDescription(
        "the sidecar is not reachable ("
            + address
            + ": "
            + why
            + "): see that it runs, that "
            + Transport.ADDRESS_VARIABLE
            + " is its address, and that both use TLS, with trusted certificates that have not"
            + " expired, or neither does");
  }

  /** Makes a call with one answer, once. */
  <Q, R> CompletableFuture<R> ask(MethodDescriptor<Q, R> method, Q request, Duration timeout) {
    CompletableFuture<R> answer = new CompletableFuture<>();
    if (closed) {
      answer.completeExceptionally(closed());
      return answer;
    }
    CallOptions options =
        CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
    ClientCall<Q, R> call = channel.newCall(method, options);
    try {
      call.start(new One<>(answer), new Metadata());
      send(method, call, request, 2); // so that the end is heard without another request
    } catch (RejectedExecutionException late) {
      answer.completeExceptionally(closed());
    }
    answer.whenComplete(
        (reply, failure) -> {
          if (answer.isCancelled()) {
            cancelled(call);
          }
        });
    return answer;
  }

  private static void cancelled(ClientCall<?, ?> call) {
    try {
      call.cancel("given up", null);
    } catch (RejectedExecutionException closed) {
      return; // the connection is closed for good, and the call has ended with it
    }
  }

  private static <Q> void send(
      MethodDescriptor<Q, ?> method, ClientCall<Q, ?> call, Q request, int messages) {
    call.request(messages);
    call.sendMessage(request);
    if (method.getType().clientSendsOneMessage()) {
      call.halfClose();
    }
  }

  /**
   * Makes a call that may be repeated until it is answered, the ensemble reachable, or the time
   * over.
   */
  <Q, R> CompletableFuture<R> insist(MethodDescriptor<Q, R> method, Q request) {
    return repeat(method, request, SidekeeperException::isTransient, TIMEOUT);
  }

  /**
   * Makes a call that must not be done twice. It is repeated only where the sidecar says that
   * nothing was done: the ensemble is out of reach.
   */
  <Q, R> CompletableFuture<R> attempt(MethodDescriptor<Q, R> method, Q request) {
    return repeat(method, request, EnsembleUnreachableException.class::isInstance, TIMEOUT);
  }

  /**
   * Makes a call that waits for others and may be repeated, until it is answered or fails with what
   * time does not heal.
   */
  <Q, R> CompletableFuture<R> persist(
      MethodDescriptor<Q, R> method, Q request, Predicate<SidekeeperException> heals) {
    return repeat(method, request, heals, LONGEST);
  }

  /** Makes a call for so long, until it is answered or fails with what time does not heal. */
  <Q, R> CompletableFuture<R> repeat(
      MethodDescriptor<Q, R> method,
      Q request,
      Predicate<SidekeeperException> heals,
      Duration time) {
    CompletableFuture<R> result = new CompletableFuture<>();
    Runnable forget = atClose(() -> result.completeExceptionally(closed()));
    result.whenComplete((reply, failure) -> forget.run());
    new Repetition<>(method, request, heals, time, result).begin();
    return result;
  }

  /**
   * Listens to a stream until it ends, with an error or with OK. Pulled, it sends one message and
   * one more for each more.
   */
  <Q, R> Stream<Q> open(
      MethodDescriptor<Q, R> method, Q request, boolean pulled, Consumer<R> heard, Ended ended) {
    if (closed) {
      throw closed();
    }
    ClientCall<Q, R> call = channel.newCall(method, CallOptions.DEFAULT);
    try {
      call.start(new Many<>(call, pulled, heard, ended), new Metadata());
      send(method, call, request, 1);
    } catch (RejectedExecutionException late) {
      throw closed();
    }
    return new Stream<>(call);
  }

  /** Takes in how a stream ended; null for OK. */
  interface Ended {
    void accept(@Nullable SidekeeperException failure);
  }

  /** What is held open: a call of its own, or a part of another's. */
  interface Open {
    /** Ends it. Does nothing when it has ended. */
    void cancel();

    /** Has the sidecar end what it was opened for, and completes when that has confirmed it. */
    default CompletableFuture<?> giveUp(Kind.GiveUp call, String key, Duration timeout) {
      return call.ask(key, timeout);
    }
  }

  /** A stream that is open. */
  record Stream<Q>(ClientCall<Q, ?> call) implements Open {
    @Override
    public void cancel() {
      cancelled(call);
    }

    /**
     * Sends one message more, one at a time, of a stream that takes several. Does nothing when it
     * has ended. It does not wait until the sidecar takes it.
     */
    void send(Q message) {
      try {
        call.sendMessage(message);
      } catch (IllegalStateException | RejectedExecutionException over) {
        return; // it was cancelled, or the connection is closed for good
      }
    }

    /** Says once that nothing more is sent. Does nothing when it has ended. */
    void end() {
      try {
        call.halfClose();
      } catch (IllegalStateException | RejectedExecutionException over) {
        return; // it was cancelled, or the connection is closed for good
      }
    }

    /** Asks for one more message. */
    void more() {
      try {
        call.request(1);
      } catch (RejectedExecutionException closed) {
        return; // the connection is closed for good, and the stream has ended with it
      }
    }
  }

  private final class One<R> extends ClientCall.Listener<R> {
    private final CompletableFuture<R> answer;
    private @Nullable R reply;

    One(CompletableFuture<R> answer) {
      this.answer = answer;
    }

    @Override
    public void onMessage(R message) {
      reply = message;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      R told = reply;
      if (status.isOk() && told != null) {
        answer.complete(told);
      } else {
        Status without = Status.INTERNAL.withDescription("the sidecar answered without a message");
        answer.completeExceptionally(failure(status.isOk() ? without : status, trailers));
      }
    }
  }

  private final class Many<R> extends ClientCall.Listener<R> {
    private final ClientCall<?, R> call;
    private final boolean pulled;
    private final Consumer<R> heard;
    private final Ended ended;

    Many(ClientCall<?, R> call, boolean pulled, Consumer<R> heard, Ended ended) {
      this.call = call;
      this.pulled = pulled;
      this.heard = heard;
      this.ended = ended;
    }

    @Override
    public void onMessage(R message) {
      heard.accept(message);
      if (!pulled) {
        call.request(1);
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      ended.accept(status.isOk() ? null : failure(status, trailers));
    }
  }

  private final class Repetition<Q, R> {
    private final MethodDescriptor<Q, R> method;
    private final Q request;
    private final Predicate<SidekeeperException> heals;
    private final CompletableFuture<R> result;
    private final long until;
    private final Pause pause = new Pause();

    Repetition(
        MethodDescriptor<Q, R> method,
        Q request,
        Predicate<SidekeeperException> heals,
        Duration time,
        CompletableFuture<R> result) {
      this.until = System.nanoTime() + time.toNanos();
      this.method = method;
      this.request = request;
      this.heals = heals;
      this.result = result;
    }

    void begin() {
      Duration left = Duration.ofNanos(Math.max(until - System.nanoTime(), 1_000_000));
      CompletableFuture<R> once = ask(method, request, left);
      once.whenComplete(this::take);
      result.whenComplete(
          (reply, failure) -> {
            if (failure != null) {
              once.cancel(true);
            }
          });
    }

    private void take(@Nullable R reply, @Nullable Throwable failure) {
      if (failure == null) {
        result.complete(reply);
        return;
      }
      Duration rest = pause.next();
      boolean inTime = System.nanoTime() + rest.toNanos() < until;
      if (!result.isDone()
          && inTime
          && failure instanceof SidekeeperException known
          && heals.test(known)) {
        workers.after(rest, this::begin);
      } else {
        result.completeExceptionally(failure);
      }
    }
  }
}
