package io.sidekeeper;

import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.once.v1.BeginRequest;
import io.sidekeeper.once.v1.BeginResponse;
import io.sidekeeper.once.v1.Begun;
import io.sidekeeper.once.v1.FinishRequest;
import io.sidekeeper.once.v1.OnceServiceGrpc;
import io.sidekeeper.once.v1.Per;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller's attempt at work that is done once. Finish it: an attempt that is closed without that
 * counts as lost.
 */
public final class Attempt extends Recorded<BeginRequest, BeginResponse> {
  private Attempt(
      Kind<BeginRequest, BeginResponse> kind,
      String name,
      String key,
      OnceOptions options,
      @Nullable Lease own,
      Serial events) {
    super(
        kind,
        "work " + name + " " + key,
        options.perName() ? name : name + "/" + key,
        options.lease(),
        own,
        options.listener(),
        events);
  }

  /** Begins the work, also at a sidecar that is away for a time. */
  static CompletableFuture<Attempt> begin(
      Kind<BeginRequest, BeginResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String name,
      String key,
      OnceOptions options) {
    Rules.given("name", name);
    Rules.given("key", key);
    Rules.given("options", options);
    Serial events = new Serial(kind.core().workers);
    BeginRequest request = request(name, key, options);
    return through(
        kind.core(),
        leases,
        options.lease(),
        options.waitTimeout(),
        options.owner(),
        options.metadata(),
        (own, wait, heard) ->
            new Attempt(kind, name, key, options, own, events).start(request, wait, heard));
  }

  private static BeginRequest request(String name, String key, OnceOptions options) {
    BeginRequest.Builder request =
        BeginRequest.newBuilder()
            .setName(name)
            .setKey(key)
            .setPer(options.perName() ? Per.PER_NAME : Per.PER_KEY)
            .setOnLoss(Wire.policy(options.onLoss()))
            .setOnFailure(Wire.policy(options.onFailure()))
            .setAttempts(options.attempts())
            .setOwner(options.owner())
            .putAllMetadata(options.metadata());
    if (options.keep() != null) {
      request.setKeep(Wire.duration(options.keep()));
    }
    return request.build();
  }

  private CompletableFuture<Attempt> start(
      BeginRequest request, @Nullable Duration wait, Runnable heard) {
    BeginRequest waiting =
        wait == null ? request : request.toBuilder().setWaitTimeout(Wire.duration(wait)).build();
    return Handing.out(this, () -> open(waiting, heard));
  }

  @Override
  String grant(BeginResponse event) {
    Begun begun = event.getBegun();
    return begunAs(begun.getHoldId(), begun.getFencingToken(), begun.getAttempt());
  }

  @Override
  void notice(BeginResponse event) {
    switch (event.getEventCase()) {
      case QUEUED -> queued(event.getQueued());
      case SUSPENDED -> suspended(event.getSuspended());
      case RESUMED -> resumed();
      case REVOCATION_REQUESTED -> asked(event.getRevocationRequested());
      default -> {} // begun, or something newer than this client
    }
  }

  @Override
  CompletableFuture<?> recording(io.sidekeeper.once.v1.Outcome outcome, String note) {
    FinishRequest.Builder request = FinishRequest.newBuilder().setHoldId(holdId());
    return repeat(
        OnceServiceGrpc.getFinishMethod(), request.setOutcome(outcome).setNote(note).build());
  }
}
