package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lock.v1.CheckRequest;
import io.sidekeeper.lock.v1.CheckedHold;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/** What the parts of one client share. */
final class Core {
  private static final int MOST_HOLDS = 1000;

  /** Bounds an acknowledgment, and so how long it holds up a client that is closed. */
  private static final Duration ACKNOWLEDGE_TIME = Duration.ofSeconds(2);

  /** Guards all claims of the client. */
  final Object monitor = new Object();

  final Workers workers = new Workers();
  final Calls calls;
  final Keeper holds;
  final Keeper terms;

  /** What has a stream. */
  final Set<Held> open = ConcurrentHashMap.newKeySet();

  private final Map<String, CompletableFuture<?>> acknowledgments = new ConcurrentHashMap<>();
  private final Transport transport;

  Core(ClientBuilder builder) {
    Transport made;
    try {
      made = Transport.open(builder.address, builder.credentials, workers);
    } catch (RuntimeException refused) {
      workers.close();
      throw refused;
    }
    transport = made;
    calls = new Calls(transport.channel, workers);
    holds = new Keeper(monitor, workers, this::checkHolds);
    terms = new Keeper(monitor, workers, this::checkLeases);
  }

  void close() {
    if (calls.isClosed()) {
      return;
    }
    calls.close();
    synchronized (monitor) {
      holds.close(); // before the sidecar learns of it
      terms.close();
      for (Held held : new LinkedHashSet<>(open)) {
        held.claim.lose(Calls.closed());
      }
    }
    Waiting.awaitAnyway(
        CompletableFuture.allOf(acknowledgments.values().toArray(CompletableFuture[]::new)));
    transport.close();
    workers.close();
  }

  /**
   * Tells the sidecar that the caller counts on a hold no more which did not end by the caller's
   * own hand. It keeps its place until then, or until the caller cannot be counting on it any more:
   * so nothing but the others' time is lost with an acknowledgment that does not arrive. When the
   * client is closed, the end of the connection tells the same.
   */
  void acknowledge(String holdId) {
    ReleaseRequest request = ReleaseRequest.newBuilder().setHoldId(holdId).build();
    CompletableFuture<Boolean> told =
        calls
            .ask(LockServiceGrpc.getReleaseMethod(), request, ACKNOWLEDGE_TIME)
            .handle((reply, howItEnded) -> howItEnded == null);
    acknowledgments.put(holdId, told);
    told.thenRun(() -> acknowledgments.remove(holdId));
  }

  private CompletableFuture<Map<String, Answer>> checkHolds(
      Collection<String> ids, Duration patience) {
    List<String> all = List.copyOf(ids);
    List<CompletableFuture<Map<String, Answer>>> parts = new ArrayList<>();
    for (int first = 0; first < all.size(); first += MOST_HOLDS) {
      parts.add(checkSome(all.subList(first, Math.min(first + MOST_HOLDS, all.size())), patience));
    }
    return merged(parts);
  }

  /** Asks about each hold alone if one of them is unknown: the sidecar does not say which. */
  private CompletableFuture<Map<String, Answer>> checkSome(List<String> ids, Duration patience) {
    CheckRequest request = CheckRequest.newBuilder().addAllHoldIds(ids).build();
    return calls
        .ask(LockServiceGrpc.getCheckMethod(), request, patience)
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
              return merged(ids.stream().map(id -> checkSome(List.of(id), patience)).toList());
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

  private CompletableFuture<Map<String, Answer>> checkLeases(
      Collection<String> ids, Duration patience) {
    return merged(ids.stream().map(id -> checkLease(id, patience)).toList());
  }

  private CompletableFuture<Map<String, Answer>> checkLease(String id, Duration patience) {
    var request = io.sidekeeper.lease.v1.CheckRequest.newBuilder().setLeaseId(id).build();
    return calls
        .ask(LeaseServiceGrpc.getCheckMethod(), request, patience)
        .thenApply(reply -> new Answer(Wire.duration(reply.getValidFor()).toNanos(), null, false))
        .exceptionallyCompose(
            failure -> {
              if (Waiting.unwrap(failure) instanceof SidekeeperException known && isOver(known)) {
                return CompletableFuture.completedFuture(new Answer(0, known, false));
              }
              return CompletableFuture.failedFuture(failure);
            })
        .thenApply(answer -> Map.of(id, answer));
  }

  private static boolean isOver(SidekeeperException failure) {
    return failure.code() == Status.Code.ABORTED || failure.code() == Status.Code.NOT_FOUND;
  }

  /** Waits for all; fails if one of them fails. */
  private static CompletableFuture<Map<String, Answer>> merged(
      List<CompletableFuture<Map<String, Answer>>> parts) {
    return CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new))
        .thenApply(
            nothing -> {
              Map<String, Answer> all = new HashMap<>();
              parts.forEach(part -> all.putAll(part.join()));
              return all;
            });
  }
}
