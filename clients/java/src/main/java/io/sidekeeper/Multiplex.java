package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import io.sidekeeper.lease.v1.CheckValidity;
import io.sidekeeper.lease.v1.Event;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.lease.v1.Stop;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The stream of a lease, which carries all that its client starts on the lease. */
final class Multiplex {
  private final Core core;
  private final Claim lease;
  private final Map<Long, Request<?>> requests = new ConcurrentHashMap<>();
  private final Map<Long, CompletableFuture<Answer>> checks = new ConcurrentHashMap<>();
  private volatile Calls.@Nullable Stream<MultiplexRequest> stream;
  private long last;

  Multiplex(Core core, Claim lease) {
    this.core = core;
    this.lease = lease;
  }

  /** Opens the lease. What is told of the lease itself, and its end, is taken in by others. */
  Calls.Open open(MultiplexRequest open, Consumer<MultiplexResponse> heard, Calls.Ended ended) {
    Calls.Stream<MultiplexRequest> opened =
        core.calls.open(
            LeaseServiceGrpc.getMultiplexMethod(),
            open,
            false,
            message -> hear(message, heard),
            failure -> {
              ended.accept(failure);
              end();
            });
    stream = opened;
    return opened;
  }

  /** Starts a lock or a member, whose events are made from what is told of it and of the lease. */
  <R> Calls.Open start(
      Start.Builder start,
      Function<MultiplexResponse, R> read,
      Consumer<R> heard,
      Calls.Ended ended) {
    if (lease.isOver()) {
      throw lease.cause();
    }
    synchronized (this) {
      Request<R> request = new Request<>(++last, read, heard, ended);
      requests.put(last, request);
      send(MultiplexRequest.newBuilder().setStart(start.setRequestId(last)));
      return request;
    }
  }

  /**
   * Asks for how long the lease is valid. All ends that are told before the answer are known then.
   */
  CompletableFuture<Answer> check(Duration timeout) {
    CompletableFuture<Answer> answer = new CompletableFuture<>();
    synchronized (this) {
      long id = ++last;
      checks.put(id, answer);
      answer.whenComplete((known, failure) -> checks.remove(id));
      send(MultiplexRequest.newBuilder().setCheck(CheckValidity.newBuilder().setCheckId(id)));
    }
    if (lease.isOver()) {
      answer.complete(new Answer(0, lease.cause(), false));
    }
    return core.workers.within(timeout, Status.Code.DEADLINE_EXCEEDED, answer);
  }

  private synchronized void send(MultiplexRequest.Builder request) {
    Calls.Stream<MultiplexRequest> opened = stream;
    if (opened != null) {
      opened.send(request.build());
    }
  }

  private void hear(MultiplexResponse message, Consumer<MultiplexResponse> heard) {
    switch (message.getResponseCase()) {
      case EVENT -> {
        Request<?> request = requests.get(message.getEvent().getRequestId());
        if (request != null) {
          request.hear(message);
        }
      }
      case ENDED -> {
        Request<?> request = requests.get(message.getEnded().getRequestId());
        if (request != null) {
          request.end(Wire.failure(message.getEnded()));
        }
      }
      case CHECKED -> {
        CompletableFuture<Answer> check = checks.get(message.getChecked().getCheckId());
        if (check != null) {
          long validFor = Wire.duration(message.getChecked().getValidFor()).toNanos();
          check.complete(new Answer(validFor, null, false));
        }
      }
      default -> { // of the lease, and so of all that it has
        heard.accept(message);
        requests.values().stream()
            .filter(request -> request.granted)
            .forEach(request -> request.hear(message));
      }
    }
  }

  /** Is for when the lease has ended with its stream. */
  private void end() {
    SidekeeperException why = lease.cause();
    requests.values().forEach(request -> request.end(why));
    checks.values().forEach(check -> check.complete(new Answer(0, why, false)));
  }

  /** A lock or a member on the stream. */
  private final class Request<R> implements Calls.Open {
    private final long id;
    private final Function<MultiplexResponse, R> read;
    private final Consumer<R> heard;
    private final Calls.Ended ended;
    private final AtomicBoolean stopped = new AtomicBoolean();

    /** Completed when nothing more is told of it. */
    private final CompletableFuture<Void> over = new CompletableFuture<>();

    /** Whether it has what it asks for; of the stream's reader. */
    private boolean granted;

    Request(long id, Function<MultiplexResponse, R> read, Consumer<R> heard, Calls.Ended ended) {
      this.id = id;
      this.read = read;
      this.heard = heard;
      this.ended = ended;
    }

    void hear(MultiplexResponse message) {
      Event event = message.getEvent();
      granted = granted || event.getAcquire().hasGranted() || event.getJoin().hasJoined();
      heard.accept(read.apply(message));
    }

    void end(@Nullable SidekeeperException failure) {
      if (requests.remove(id) == null) {
        return;
      }
      ended.accept(failure);
      if (failure == null) {
        over.complete(null);
      } else {
        over.completeExceptionally(failure);
      }
    }

    /** Gives it up, or acknowledges its end. */
    private void stop() {
      if (stopped.compareAndSet(false, true)) {
        send(MultiplexRequest.newBuilder().setStop(Stop.newBuilder().setRequestId(id)));
      }
    }

    @Override
    public void cancel() {
      stop();
      end(new SidekeeperException(Status.Code.CANCELLED, "", new Told("given up")));
    }

    /** Says so on the stream, and by the call when that has ended. */
    @Override
    public CompletableFuture<?> giveUp(Kind.GiveUp call, String key, Duration timeout) {
      if (over.isCompletedExceptionally()) {
        return call.ask(key, timeout);
      }
      stop();
      return core.workers.within(timeout, Status.Code.DEADLINE_EXCEEDED, over.copy());
    }
  }
}
