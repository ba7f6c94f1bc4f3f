package io.sidekeeper;

import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.schedule.v1.FinishRequest;
import io.sidekeeper.schedule.v1.Fire;
import io.sidekeeper.schedule.v1.ScheduleServiceGrpc;
import io.sidekeeper.schedule.v1.WorkRequest;
import io.sidekeeper.schedule.v1.WorkResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller's attempt at a tick of a schedule, or at a run. Finish it: a tick that is closed
 * without that counts as lost, and begins again.
 */
public final class Tick extends Recorded<WorkRequest, WorkResponse> {
  private Instant at = Instant.EPOCH;
  private String runId = "";

  private Tick(
      Kind<WorkRequest, WorkResponse> kind,
      String name,
      WorkOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "schedule " + name, name, options.lease(), own, options.listener(), events);
  }

  /** Waits for a tick, also at a sidecar that is away for a time. */
  static CompletableFuture<Tick> begin(
      Kind<WorkRequest, WorkResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String name,
      WorkOptions options) {
    Rules.given("name", name);
    Rules.given("options", options);
    Serial events = new Serial(kind.core().workers);
    WorkRequest request =
        WorkRequest.newBuilder()
            .setName(name)
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .build();
    return through(
        kind.core(),
        leases,
        options.lease(),
        options.waitTimeout(),
        options.owner(),
        options.metadata(),
        (own, wait, heard) ->
            new Tick(kind, name, options, own, events).start(request, wait, heard));
  }

  private CompletableFuture<Tick> start(
      WorkRequest request, @Nullable Duration wait, Runnable heard) {
    WorkRequest waiting =
        wait == null ? request : request.toBuilder().setWaitTimeout(Wire.duration(wait)).build();
    return Handing.out(this, () -> open(waiting, heard));
  }

  @Override
  String grant(WorkResponse event) {
    Fire fire = event.getFire();
    at = Instant.ofEpochSecond(fire.getTick().getSeconds(), fire.getTick().getNanos());
    runId = fire.getRunId();
    return begunAs(fire.getHoldId(), fire.getFencingToken(), fire.getAttempt());
  }

  @Override
  void notice(WorkResponse event) {
    switch (event.getEventCase()) {
      case QUEUED -> queued(event.getQueued());
      case SUSPENDED -> suspended(event.getSuspended());
      case RESUMED -> resumed();
      case REVOCATION_REQUESTED -> asked(event.getRevocationRequested());
      default -> {} // fire, or something newer than this client
    }
  }

  @Override
  CompletableFuture<?> recording(io.sidekeeper.once.v1.Outcome outcome, String note) {
    FinishRequest.Builder request = FinishRequest.newBuilder().setHoldId(holdId());
    return repeat(
        ScheduleServiceGrpc.getFinishMethod(), request.setOutcome(outcome).setNote(note).build());
  }

  /**
   * Says when the tick was due, which is the same for all its attempts.
   *
   * @return its time; of a run, when it was asked for
   */
  public Instant at() {
    return at;
  }

  /**
   * Names a run.
   *
   * @return its id; empty for a tick
   */
  public String runId() {
    return runId;
  }
}
