package io.sidekeeper;

import io.sidekeeper.barrier.v1.BarrierServiceGrpc;
import io.sidekeeper.barrier.v1.EnterRequest;
import io.sidekeeper.barrier.v1.EnterResponse;
import io.sidekeeper.barrier.v1.LeaveRequest;
import io.sidekeeper.barrier.v1.LeaveResponse;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller inside a double barrier, until it leaves. Leave, or release, also after it was lost:
 * close releases.
 */
public final class BarrierEntry extends Grounded<EnterRequest, EnterResponse> {
  private final String barrier;
  private final BarrierOptions options;
  private final Serial events;
  private final CompletableFuture<Void> lostMeanwhile = new CompletableFuture<>();
  private String holdId = "";
  private long round;

  private BarrierEntry(
      Kind<EnterRequest, EnterResponse> kind,
      String barrier,
      BarrierOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "entry of barrier " + barrier, LostException::new, options.lease(), own);
    this.barrier = barrier;
    this.options = options;
    this.events = events;
  }

  /** The lease's stream gives it up. Where that has ended, so has the entry, and Leave says how. */
  static Kind<EnterRequest, EnterResponse> kind(Core core) {
    return new Kind<>(
        core,
        BarrierServiceGrpc.getEnterMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setEnter(request), BarrierEntry::event),
        "entered",
        null,
        (id, timeout) ->
            core.calls.ask(
                BarrierServiceGrpc.getLeaveMethod(),
                LeaveRequest.newBuilder().setHoldId(id).build(),
                timeout),
        true);
  }

  private static EnterResponse event(MultiplexResponse told) {
    EnterResponse.Builder event = EnterResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getEnter();
    };
  }

  /** Enters, also through a sidecar that is away for a time. */
  static CompletableFuture<BarrierEntry> enter(
      Kind<EnterRequest, EnterResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String barrier,
      int size,
      BarrierOptions options) {
    Rules.given("barrier", barrier);
    Rules.given("options", options);
    Lease given = options.lease();
    if (given != null && given.core != kind.core()) {
      throw new IllegalArgumentException("the lease is another client's");
    }
    Serial events = new Serial(kind.core().workers);
    LeaseOptions opening = new LeaseOptions().owner(options.owner()).metadata(options.metadata());
    return Absence.through(
        kind.core(),
        options.waitTimeout(),
        given,
        (wait, heard) ->
            given == null
                ? begin(
                    leases,
                    opening,
                    wait,
                    heard,
                    (own, left) ->
                        new BarrierEntry(kind, barrier, options, own, events)
                            .enter(size, left, heard))
                : new BarrierEntry(kind, barrier, options, null, events).enter(size, wait, heard),
        BarrierEntry::giveUp);
  }

  private CompletableFuture<BarrierEntry> enter(int size, @Nullable Duration wait, Runnable heard) {
    EnterRequest.Builder request =
        EnterRequest.newBuilder()
            .setName(barrier)
            .setSize(size)
            .setOwner(options.owner())
            .putAllMetadata(options.metadata());
    if (wait != null) {
      request.setWaitTimeout(Wire.duration(wait));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(EnterResponse event) {
    holdId = event.getEntered().getHoldId();
    round = event.getEntered().getRound();
    return holdId;
  }

  @Override
  void notice(EnterResponse event) {
    BarrierListener listener = options.listener();
    switch (event.getEventCase()) {
      case WAITING -> events.run(() -> listener.waiting(event.getWaiting().getPresent()));
      case SUSPENDED -> {
        Duration remaining = Wire.duration(event.getSuspended().getRemaining());
        events.run(() -> listener.suspended(remaining));
      }
      case RESUMED -> events.run(listener::resumed);
      default -> {} // entered, or something newer than this client
    }
  }

  @Override
  void begun() {
    claim.whenOver(
        () -> {
          LostException lost = claim.lost();
          if (lost != null) {
            events.run(() -> options.listener().lost(lost));
          }
        });
  }

  /**
   * Says which double barrier it is of.
   *
   * @return the barrier's name
   */
  public String barrier() {
    return barrier;
  }

  /**
   * Tells those who are inside together from all others.
   *
   * @return a number that is the same for all of them, and larger than that of those before
   */
  public long round() {
    return round;
  }

  /**
   * Ends the entry, and returns when all who entered with it have left or have lost their leases.
   * For the caller it is over at once. It waits for a sidecar or an ensemble that is away, too.
   * Again, and after release, it waits for those who have not left yet; the sidecar knows of them
   * for ten minutes.
   *
   * @throws InterruptedException if the thread is interrupted: the entry is released then, and
   *     others may be inside
   * @throws LostException if it was lost before, or before the sidecar has taken it back
   * @throws ReleaseUnconfirmedException if the sidecar cannot say that the others have left: then
   *     the entry is over all the same
   */
  public void leave() throws InterruptedException {
    Waiting.await(leaving());
  }

  /**
   * Does the same as {@link #leave}, without a wait.
   *
   * @return a stage that is completed when all have left, or fails as leave does; cancel it to
   *     release the entry instead
   */
  public CompletableFuture<Void> leaveAsync() {
    return core.workers.hand(leaving());
  }

  private CompletableFuture<Void> leaving() {
    claim.end(null);
    LostException lost = claim.lost();
    CompletableFuture<LeaveResponse> asked =
        lost == null
            ? core.calls.persist(
                BarrierServiceGrpc.getLeaveMethod(),
                LeaveRequest.newBuilder().setHoldId(holdId).build(),
                this::mayStillLeave)
            : CompletableFuture.failedFuture(lost);
    lostMeanwhile.whenComplete((nothing, why) -> asked.completeExceptionally(why));
    CompletableFuture<Void> left = new CompletableFuture<>();
    asked.whenComplete(
        (all, failure) -> {
          releasing();
          if (failure == null) {
            left.complete(null);
          } else {
            left.completeExceptionally(
                failure instanceof SidekeeperException known ? notConfirmed(known) : failure);
          }
        });
    left.whenComplete(
        (all, failure) -> {
          if (left.isCancelled()) {
            asked.cancel(true);
          }
        });
    return left;
  }

  /** A sidecar that is frozen says nothing, but the end of the lease does. */
  @Override
  void ended(@Nullable SidekeeperException failure) {
    if (failure != null) {
      lostMeanwhile.completeExceptionally(claim.asLost(failure));
    }
  }

  /** A sidecar that was started anew knows the entry only when its stream has come back. */
  private boolean mayStillLeave(SidekeeperException failure) {
    boolean unknown = failure.reason().equals("HOLD_NOT_FOUND");
    return failure.isTransient() || (unknown && !isStreamOver());
  }

  /**
   * Ends the entry without waiting for the others, who wait for it no more. For the caller it is
   * over at once. Again, and after leave, it does nothing more. It waits for at most about 15
   * seconds, even if the thread is interrupted.
   *
   * @throws LostException if it was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then it is over for
   *     the caller all the same, and for others by the time its validity would have been
   */
  public void release() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #release}, without a wait.
   *
   * @return a stage that is completed when the others do not wait any more, or fails as release
   *     does
   */
  public CompletableFuture<Void> releaseAsync() {
    return core.workers.hand(releasing());
  }

  /** Does the same as {@link #release}. */
  @Override
  public void close() {
    release();
  }
}
