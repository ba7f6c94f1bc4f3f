package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import io.sidekeeper.hold.v1.Resumed;
import io.sidekeeper.hold.v1.Suspended;
import io.sidekeeper.lease.v1.CheckValidity;
import io.sidekeeper.lease.v1.Event;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Resume;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.lease.v1.Stop;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The stream of a lease, which carries all that its client starts on the lease. */
final class Multiplex {
  /**
   * What passes between two attempts to come back to a lease: the sidecar is on this machine, and
   * may be there at any moment.
   */
  private static final Duration RESUME_PAUSE = Duration.ofMillis(50);

  /** How often those who hold something are told for how long it is valid, until it is resumed. */
  private static final Duration TELL_INTERVAL = Duration.ofSeconds(1);

  private final Core core;
  private final Claim lease;
  private final Map<Long, Request<?>> requests = new ConcurrentHashMap<>();
  private final Map<Long, CompletableFuture<Answer>> checks = new ConcurrentHashMap<>();
  private Consumer<MultiplexResponse> heard = message -> {};
  private Calls.Ended ended = failure -> {};
  private Calls.@Nullable Stream<MultiplexRequest> stream;
  private List<MultiplexRequest> unsent = new ArrayList<>();
  private long streamsOver;
  private boolean cancelled;
  private boolean closing;
  private boolean resting;
  private long last;

  private volatile String leaseId = "";

  /**
   * Whether a stream that comes after this one can resume the lease: over anything else than a Unix
   * socket none can, whatever the sidecar says.
   */
  private volatile boolean resumable;

  /** How the lease's stream has broken, until another one has resumed the lease. */
  private volatile @Nullable SidekeeperException broken;

  /** When it was told last that the lease is suspended. */
  private volatile long told;

  Multiplex(Core core, Claim lease) {
    this.core = core;
    this.lease = lease;
  }

  /** Opens the lease. What is told of the lease itself, and its end, is taken in by others. */
  Calls.Open open(MultiplexRequest open, Consumer<MultiplexResponse> heard, Calls.Ended ended) {
    this.heard = heard;
    this.ended = ended;
    begin(open, 0);
    return this::cancel;
  }

  /** Opens a stream, over which everything goes that is unsent. So many were over before it. */
  private void begin(MultiplexRequest first, long before) {
    Calls.Stream<MultiplexRequest> opened =
        core.calls.open(
            LeaseServiceGrpc.getMultiplexMethod(), first, false, this::hear, this::streamEnded);
    boolean late;
    synchronized (this) {
      late = cancelled;
      if (streamsOver == before) { // it may have ended already
        stream = opened;
        unsent.forEach(opened::send);
        unsent.clear();
        if (closing) {
          opened.end();
        }
      }
    }
    if (late) {
      opened.cancel();
    }
  }

  /** Has the sidecar close the lease when it has taken what was sent before. */
  synchronized void close() {
    if (!closing && stream != null) {
      stream.end();
    }
    closing = true;
  }

  /** Ends the stream, or the attempts to come back to the lease. */
  private void cancel() {
    Calls.@Nullable Stream<MultiplexRequest> opened;
    boolean rested;
    synchronized (this) {
      cancelled = true;
      opened = stream;
      rested = resting;
      resting = false;
    }
    if (opened != null) {
      opened.cancel();
    } else if (rested) {
      finish(broken);
    }
  }

  private void streamEnded(@Nullable SidekeeperException failure) {
    synchronized (this) {
      streamsOver++;
      stream = null;
      requests.values().forEach(request -> request.mayBeGone = request.stopped);
    }
    SidekeeperException before = broken;
    if (before == null && failure != null && mayResume(failure)) {
      broken = failure;
      told = System.nanoTime() - TELL_INTERVAL.toNanos();
      rest(Duration.ZERO);
    } else if (before == null || lease.isOver()) {
      finish(failure);
    } else if (failure == null || Calls.mayHeal(failure, true)) {
      rest(RESUME_PAUSE);
    } else {
      // A sidecar that knows no such lease lives: then the end of the stream was that of the lease.
      finish(failure.reason().equals("LEASE_NOT_FOUND") ? before : failure);
    }
  }

  /** Says whether it has broken without a word, as when the sidecar's process ends. */
  private boolean mayResume(SidekeeperException failure) {
    return resumable && failure.isTransient() && failure.reason().isEmpty() && lease.validFor() > 0;
  }

  private void rest(Duration pause) {
    boolean late;
    synchronized (this) {
      late = cancelled;
      resting = !late;
    }
    if (late) {
      finish(broken);
    } else {
      core.workers.after(pause, this::comeBack);
    }
  }

  /**
   * Makes one attempt to come back to the lease. Until one succeeds, the caller's claims count on
   * what they were told, and no longer than that.
   */
  private void comeBack() {
    MultiplexRequest resume;
    long before;
    synchronized (this) {
      if (!resting) {
        return;
      }
      resting = false;
      before = streamsOver;
    }
    long left = lease.validFor();
    if (left == 0) {
      finish(broken);
      return;
    }
    if (System.nanoTime() - told >= TELL_INTERVAL.toNanos()) {
      told = System.nanoTime();
      Suspended.Builder suspended =
          Suspended.newBuilder().setRemaining(Wire.duration(Duration.ofNanos(left)));
      tell(MultiplexResponse.newBuilder().setSuspended(suspended).build());
    }
    synchronized (this) {
      resume = resume();
    }
    core.reconnect();
    try {
      begin(resume, before);
    } catch (SidekeeperException closed) {
      finish(closed);
    }
  }

  /** Comes back with all requests that have not ended; what else is open follows. */
  private MultiplexRequest resume() {
    Resume.Builder resume = Resume.newBuilder().setLeaseId(leaseId);
    unsent = new ArrayList<>();
    checks.keySet().forEach(id -> unsent.add(checkRequest(id)));
    for (Request<?> request : requests.values()) {
      resume.addClaims(request.claim());
      if (request.stopped) {
        unsent.add(stopRequest(request.id));
      }
    }
    return MultiplexRequest.newBuilder().setResume(resume).build();
  }

  private static MultiplexRequest checkRequest(long id) {
    return MultiplexRequest.newBuilder()
        .setCheck(CheckValidity.newBuilder().setCheckId(id))
        .build();
  }

  private static MultiplexRequest stopRequest(long id) {
    return MultiplexRequest.newBuilder().setStop(Stop.newBuilder().setRequestId(id)).build();
  }

  /** Says whether the lease's clock counts: a request has not ended, or the stream is broken. */
  boolean carriesAnything() {
    return broken != null || !requests.isEmpty();
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
      Start own = start.setRequestId(++last).build();
      Request<R> request = new Request<>(own, read, heard, ended);
      requests.put(last, request);
      send(MultiplexRequest.newBuilder().setStart(own).build());
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
      send(checkRequest(id));
    }
    if (lease.isOver()) {
      answer.complete(new Answer(0, lease.cause(), false));
    }
    return core.workers.within(timeout, Status.Code.DEADLINE_EXCEEDED, answer);
  }

  /**
   * Sends it, with the next stream if there is none: then what is asked for is among its claims.
   */
  private synchronized void send(MultiplexRequest request) {
    if (stream == null) {
      unsent.add(request);
    } else {
      stream.send(request);
    }
  }

  private void hear(MultiplexResponse message) {
    if (message.hasOpened()) {
      leaseId = message.getOpened().getLeaseId();
      resumable = core.isOnSocket() && message.getOpened().getResumable();
    }
    if (broken == null) {
      take(message);
    } else if (message.hasOpened()) {
      broken = null;
      tell(MultiplexResponse.newBuilder().setResumed(Resumed.getDefaultInstance()).build());
    } else {
      Told unsaid = new Told("the sidecar has resumed the lease without saying so");
      lease.lose(new SidekeeperException(Status.Code.INTERNAL, "", unsaid));
    }
  }

  private void take(MultiplexResponse message) {
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
          request.hearEnd(Wire.failure(message.getEnded()));
        }
      }
      case CHECKED -> {
        CompletableFuture<Answer> check = checks.get(message.getChecked().getCheckId());
        if (check != null) {
          long validFor = Wire.duration(message.getChecked().getValidFor()).toNanos();
          check.complete(new Answer(validFor, null, false));
        }
      }
      default -> tell(message);
    }
  }

  /** Tells what is told of the lease, and so of all that it has. */
  private void tell(MultiplexResponse message) {
    heard.accept(message);
    requests.values().stream()
        .filter(request -> request.granted)
        .forEach(request -> request.hear(message));
  }

  /** Is for when the lease has ended with its stream. */
  private void finish(@Nullable SidekeeperException failure) {
    ended.accept(failure);
    SidekeeperException why = lease.cause();
    requests.values().forEach(request -> request.end(why));
    checks.values().forEach(check -> check.complete(new Answer(0, why, false)));
  }

  /** A lock or a member on the stream. */
  private final class Request<R> implements Calls.Open {
    private final long id;
    private final Start start;
    private final Function<MultiplexResponse, R> read;
    private final Consumer<R> heard;
    private final Calls.Ended ended;

    /** Completed when nothing more is told of it. */
    private final CompletableFuture<Void> over = new CompletableFuture<>();

    /** Whether it has what it asks for; of the stream's reader. */
    private volatile boolean granted;

    private volatile String holdId = "";
    private volatile long token;

    /** Whether the sidecar was asked to give it up. */
    private boolean stopped;

    /** Whether it was asked over a stream that has broken since. */
    private volatile boolean mayBeGone;

    Request(
        Start start, Function<MultiplexResponse, R> read, Consumer<R> heard, Calls.Ended ended) {
      this.id = start.getRequestId();
      this.start = start;
      this.read = read;
      this.heard = heard;
      this.ended = ended;
    }

    void hear(MultiplexResponse message) {
      Event event = message.getEvent();
      if (event.getAcquire().hasGranted()) {
        holdId = event.getAcquire().getGranted().getHoldId();
        token = event.getAcquire().getGranted().getFencingToken();
        granted = true;
      } else if (event.getAcquireAll().hasGranted()) {
        holdId = event.getAcquireAll().getGranted().getHoldId();
        // That of all: their places were made at once.
        token = event.getAcquireAll().getGranted().getLocks(0).getFencingToken();
        granted = true;
      } else if (event.getCampaign().hasElected()) {
        holdId = event.getCampaign().getElected().getHoldId();
        token = event.getCampaign().getElected().getTicket().getFencingToken();
        granted = true;
      } else if (event.getAcquirePermits().hasGranted()) {
        holdId = event.getAcquirePermits().getGranted().getHoldId();
        token = event.getAcquirePermits().getGranted().getToken();
        granted = true;
      } else if (event.getEnter().hasEntered()) {
        holdId = event.getEnter().getEntered().getHoldId();
        token = event.getEnter().getEntered().getToken();
        granted = true;
      } else if (event.getBegin().hasBegun()) {
        holdId = event.getBegin().getBegun().getHoldId();
        token = event.getBegin().getBegun().getFencingToken();
        granted = true;
      } else if (event.getWork().hasFire()) {
        holdId = event.getWork().getFire().getHoldId();
        token = event.getWork().getFire().getFencingToken();
        granted = true;
      } else if (event.getJoin().hasJoined()) {
        token = event.getJoin().getJoined().getIncarnation();
        granted = true;
      } else if (event.getShare().hasJoined()) {
        token = event.getShare().getJoined().getIncarnation();
        granted = true;
      }
      heard.accept(read.apply(message));
    }

    /** Says what it is to a sidecar that was started anew. */
    io.sidekeeper.lease.v1.Claim claim() {
      return io.sidekeeper.lease.v1.Claim.newBuilder()
          .setStart(start)
          .setHoldId(holdId)
          .setToken(token)
          .build();
    }

    /** Whose place is gone because the caller gave it up has lost nothing. */
    void hearEnd(@Nullable SidekeeperException failure) {
      boolean gone = mayBeGone && failure != null && failure.code() == Status.Code.ABORTED;
      end(gone ? null : failure);
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
      synchronized (Multiplex.this) {
        if (!stopped) {
          stopped = true;
          send(stopRequest(id));
        }
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
