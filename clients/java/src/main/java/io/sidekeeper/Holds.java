package io.sidekeeper;

import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.lock.v1.AcquireAllRequest;
import io.sidekeeper.lock.v1.AcquireAllResponse;
import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import io.sidekeeper.lock.v1.CheckRequest;
import io.sidekeeper.lock.v1.CheckedHold;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import io.sidekeeper.once.v1.BeginRequest;
import io.sidekeeper.once.v1.BeginResponse;
import io.sidekeeper.once.v1.OnceServiceGrpc;
import io.sidekeeper.schedule.v1.ScheduleServiceGrpc;
import io.sidekeeper.schedule.v1.WorkRequest;
import io.sidekeeper.schedule.v1.WorkResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Asks about the holds of locks. */
final class Holds {
  private static final int MOST_HOLDS = 1000;

  private final Core core;
  private final Calls calls;
  private final Keeper keeper;

  Holds(Core core) {
    this.core = core;
    calls = core.calls;
    keeper = core.keeper(this::check);
  }

  /** How one lock is held. */
  Kind<AcquireRequest, AcquireResponse> one() {
    return new Kind<>(
        core,
        LockServiceGrpc.getAcquireMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setAcquire(request), Holds::event),
        "granted",
        keeper,
        this::release,
        true);
  }

  /** How several locks are held, as one hold. */
  Kind<AcquireAllRequest, AcquireAllResponse> several() {
    return new Kind<>(
        core,
        LockServiceGrpc.getAcquireAllMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setAcquireAll(request), Holds::eventOfAll),
        "granted",
        keeper,
        this::release,
        true);
  }

  /** How an attempt at work holds its lock: on the stream of a lease, whose validity is its own. */
  Kind<BeginRequest, BeginResponse> attempts() {
    return new Kind<>(
        core,
        OnceServiceGrpc.getBeginMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setBegin(request), Holds::eventOfWork),
        "begun",
        null,
        this::release,
        true);
  }

  /** How an attempt at a tick does so. */
  Kind<WorkRequest, WorkResponse> ticks() {
    return new Kind<>(
        core,
        ScheduleServiceGrpc.getWorkMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setWork(request), Holds::eventOfTick),
        "fire",
        null,
        this::release,
        true);
  }

  private static WorkResponse eventOfTick(MultiplexResponse told) {
    WorkResponse.Builder event = WorkResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getWork();
    };
  }

  private static BeginResponse eventOfWork(MultiplexResponse told) {
    BeginResponse.Builder event = BeginResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getBegin();
    };
  }

  private static AcquireAllResponse eventOfAll(MultiplexResponse told) {
    AcquireAllResponse.Builder event = AcquireAllResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getAcquireAll();
    };
  }

  private static AcquireResponse event(MultiplexResponse told) {
    AcquireResponse.Builder event = AcquireResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getAcquire();
    };
  }

  private CompletableFuture<?> release(String id, Duration timeout) {
    ReleaseRequest request = ReleaseRequest.newBuilder().setHoldId(id).build();
    return calls.ask(LockServiceGrpc.getReleaseMethod(), request, timeout);
  }

  private CompletableFuture<Map<String, Answer>> check(Collection<String> ids, Duration timeout) {
    List<String> all = List.copyOf(ids);
    List<CompletableFuture<Map<String, Answer>>> parts = new ArrayList<>();
    for (int first = 0; first < all.size(); first += MOST_HOLDS) {
      parts.add(checkSome(all.subList(first, Math.min(first + MOST_HOLDS, all.size())), timeout));
    }
    return Keeper.merged(parts);
  }

  /** Asks about each hold alone if one of them is unknown: the sidecar does not say which. */
  private CompletableFuture<Map<String, Answer>> checkSome(List<String> ids, Duration timeout) {
    CheckRequest request = CheckRequest.newBuilder().addAllHoldIds(ids).build();
    return calls
        .ask(LockServiceGrpc.getCheckMethod(), request, timeout)
        .thenApply(reply -> answersOf(reply.getHoldsList()))
        .exceptionallyCompose(
            failure -> {
              if (!(Waiting.unwrap(failure) instanceof SidekeeperException unknown)
                  || !unknown.reason().equals("HOLD_NOT_FOUND")) {
                return CompletableFuture.failedFuture(failure);
              }
              if (ids.size() == 1) {
                return CompletableFuture.completedFuture(
                    Map.of(ids.get(0), new Answer(0, unknown, false)));
              }
              return Keeper.merged(
                  ids.stream().map(id -> checkSome(List.of(id), timeout)).toList());
            });
  }

  private static Map<String, Answer> answersOf(List<CheckedHold> holds) {
    Map<String, Answer> answers = new HashMap<>();
    for (CheckedHold hold : holds) {
      answers.put(hold.getHoldId(), answerOf(hold));
    }
    return answers;
  }

  private static Answer answerOf(CheckedHold hold) {
    return switch (hold.getReason()) {
      case "" -> new Answer(Wire.duration(hold.getValidFor()).toNanos(), null, false);
      case "RELEASED" -> new Answer(0, null, true);
      default ->
          new Answer(0, SidekeeperException.named(hold.getReason(), "the sidecar says so"), false);
    };
  }
}
