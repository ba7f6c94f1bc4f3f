package io.sidekeeper;

import io.sidekeeper.Keeper.Answer;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.lease.v1.CloseRequest;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.OpenRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;

/**
 * Owns what is acquired in its name: when it ends, all of that is given up at once. Close it, also
 * after it was lost.
 *
 * <p>While nothing stands on it, it is not lost when its validity runs out, as after a pause of the
 * process. It is not valid until the sidecar answers again, and {@link #error} is empty.
 */
public final class Lease extends HeldStream<MultiplexRequest, MultiplexResponse> {
  /** Carries what stands on the lease. */
  final Multiplex multiplex = new Multiplex(core, claim);

  private String id = "";
  private Duration ttl = Duration.ZERO;

  Lease(Kind<MultiplexRequest, MultiplexResponse> kind) {
    super(kind, "lease", LostException::new, null);
    claim.carries(multiplex::carriesAnything);
  }

  static Kind<MultiplexRequest, MultiplexResponse> kind(Core core) {
    Calls calls = core.calls;
    return new Kind<>(
        core,
        LeaseServiceGrpc.getMultiplexMethod(),
        null,
        "opened",
        core.keeper((ids, timeout) -> check(core, ids, timeout)),
        (id, timeout) ->
            calls.ask(
                LeaseServiceGrpc.getCloseMethod(),
                CloseRequest.newBuilder().setLeaseId(id).build(),
                timeout),
        false);
  }

  /**
   * Asks on each lease's own stream, which tells all ends before: an answer to another call may
   * come before them. A lease without a stream has ended, and one whose stream is silent keeps the
   * others from nothing.
   */
  private static CompletableFuture<Map<String, Answer>> check(
      Core core, Collection<String> ids, Duration timeout) {
    List<CompletableFuture<Map<String, Answer>>> parts = new ArrayList<>();
    for (String id : ids) {
      Multiplex multiplex = core.multiplexes.get(id);
      if (multiplex != null) {
        parts.add(multiplex.check(timeout).thenApply(answer -> Map.of(id, answer)));
      }
    }
    return CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new))
        .handle(
            (nothing, failure) -> {
              Map<String, Answer> answers = new HashMap<>();
              parts.stream()
                  .filter(part -> !part.isCompletedExceptionally())
                  .forEach(part -> answers.putAll(part.join()));
              if (failure != null && answers.isEmpty()) {
                throw new CompletionException(Waiting.unwrap(failure));
              }
              return answers;
            });
  }

  /** Opens it, also from a sidecar that is away for a time. */
  static CompletableFuture<Lease> open(
      Kind<MultiplexRequest, MultiplexResponse> kind, LeaseOptions options) {
    Rules.given("options", options);
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
    MultiplexRequest first = MultiplexRequest.newBuilder().setOpen(request).build();
    return Handing.out(this, () -> open(first, heard));
  }

  @Override
  Calls.Open begin(MultiplexRequest request, Consumer<MultiplexResponse> heard, Calls.Ended ended) {
    return multiplex.open(
        request,
        heard,
        failure -> {
          core.multiplexes.remove(id);
          ended.accept(failure);
        });
  }

  @Override
  String grant(MultiplexResponse event) {
    id = event.getOpened().getLeaseId();
    ttl = Wire.duration(event.getOpened().getTtl());
    core.multiplexes.put(id, multiplex);
    return id;
  }

  /** Closes it, which was opened for one thing alone. Where that is gone, nothing is waited for. */
  void closeUsed(boolean released) {
    claim.end(null);
    if (released) {
      multiplex.close();
    } else {
      abandon();
    }
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
   * about 15 seconds, even if the thread is interrupted.
   *
   * @throws LostException if it was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then it is over for
   *     the caller all the same, and for others by the time its validity would have been
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
