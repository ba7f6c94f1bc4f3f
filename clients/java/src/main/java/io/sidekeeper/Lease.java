package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.CheckRequest;
import io.sidekeeper.lease.v1.CloseRequest;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.OpenRequest;
import io.sidekeeper.lease.v1.OpenResponse;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Owns what is acquired in its name: when it ends, all of that is given up at once. Close it, also
 * after it was lost.
 */
public final class Lease extends HeldStream<OpenRequest, OpenResponse> {
  private String id = "";
  private Duration ttl = Duration.ZERO;

  Lease(Kind<OpenRequest, OpenResponse> kind) {
    super(kind, "lease", LostException::new, null);
  }

  static Kind<OpenRequest, OpenResponse> kind(Core core) {
    Calls calls = core.calls;
    return new Kind<>(
        core,
        LeaseServiceGrpc.getOpenMethod(),
        "opened",
        core.keeper((ids, timeout) -> check(calls, ids, timeout)),
        (id, timeout) ->
            calls.ask(
                LeaseServiceGrpc.getCloseMethod(),
                CloseRequest.newBuilder().setLeaseId(id).build(),
                timeout),
        false);
  }

  private static CompletableFuture<Map<String, Answer>> check(
      Calls calls, Collection<String> ids, Duration timeout) {
    return Keeper.merged(ids.stream().map(id -> check(calls, id, timeout)).toList());
  }

  private static CompletableFuture<Map<String, Answer>> check(
      Calls calls, String id, Duration timeout) {
    var request = CheckRequest.newBuilder().setLeaseId(id).build();
    return calls
        .ask(LeaseServiceGrpc.getCheckMethod(), request, timeout)
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

  /** Opens it, also from a sidecar that is away for a time. */
  static CompletableFuture<Lease> open(Kind<OpenRequest, OpenResponse> kind, LeaseOptions options) {
    return Absence.through(
        kind.core(),
        options.waitTimeout(),
        null,
        (wait, heard) -> new Lease(kind).open(options, heard),
        HeldStream::abandon);
  }

  /** Makes one attempt. */
  CompletableFuture<Lease> open(LeaseOptions options, Runnable heard) {
    OpenRequest.Builder request =
        OpenRequest.newBuilder().setOwner(options.owner()).putAllMetadata(options.metadata());
    if (options.ttl() != null) {
      request.setTtl(Wire.duration(options.ttl()));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(OpenResponse event) {
    id = event.getOpened().getLeaseId();
    ttl = Wire.duration(event.getOpened().getTtl());
    return id;
  }

  /**
   * Names it in calls that are made without this client.
   *
   * @return 32 hexadecimal digits, which are a secret
   */
  public String id() {
    return id;
  }

  /**
   * Says for how long the ensemble keeps it when it hears nothing of it.
   *
   * @return the time that the ensemble granted
   */
  public Duration ttl() {
    return ttl;
  }

  /**
   * Ends the lease; for the caller, it and all acquired in its name are over at once. When this
   * returns, all of it is gone from the ensemble. Again, it does the same. It waits for at most
   * about 15 seconds, also if the thread is interrupted.
   *
   * @throws LostException if it was lost before
   * @throws SidekeeperException if the sidecar has not confirmed it: then it is over for the caller
   *     all the same, and for others by the time its validity would have been
   */
  @Override
  public void close() {
    Waiting.awaitAnyway(givingUp());
  }

  /**
   * Does the same as {@link #close}, without a wait.
   *
   * @return a stage that is completed when all of it is gone, or fails as close does
   */
  public CompletableFuture<Void> closeAsync() {
    return core.workers.hand(givingUp());
  }
}
