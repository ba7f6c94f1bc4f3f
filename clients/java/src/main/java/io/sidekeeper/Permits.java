package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.semaphore.v1.AcquireRequest;
import io.sidekeeper.semaphore.v1.AcquireResponse;
import io.sidekeeper.semaphore.v1.Granted;
import io.sidekeeper.semaphore.v1.ReleaseRequest;
import io.sidekeeper.semaphore.v1.SemaphoreServiceGrpc;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** What the caller holds of a semaphore. Release it, also after it was lost: close does. */
public final class Permits extends Grounded<AcquireRequest, AcquireResponse> {
  private final String semaphore;
  private final PermitsOptions options;
  private final Serial events;
  private long token;
  private OptionalInt number = OptionalInt.empty();
  private volatile @Nullable Revocation revocation;

  private Permits(
      Kind<AcquireRequest, AcquireResponse> kind,
      String semaphore,
      PermitsOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "permits of " + semaphore, LostException::new, options.lease(), own);
    this.semaphore = semaphore;
    this.options = options;
    this.events = events;
  }

  static Kind<AcquireRequest, AcquireResponse> kind(Core core) {
    return new Kind<>(
        core,
        SemaphoreServiceGrpc.getAcquireMethod(),
        new Kind.Carried<>(
            request -> Start.newBuilder().setAcquirePermits(request), Permits::event),
        "granted",
        null,
        (id, timeout) ->
            core.calls.ask(
                SemaphoreServiceGrpc.getReleaseMethod(),
                ReleaseRequest.newBuilder().setHoldId(id).build(),
                timeout),
        true);
  }

  private static AcquireResponse event(MultiplexResponse told) {
    AcquireResponse.Builder event = AcquireResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getAcquirePermits();
    };
  }

  /** Acquires them, also from a sidecar that is away for a time. */
  static CompletableFuture<Permits> acquire(
      Kind<AcquireRequest, AcquireResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String semaphore,
      PermitsOptions options) {
    Rules.given("semaphore", semaphore);
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
                        new Permits(kind, semaphore, options, own, events).acquire(left, heard))
                : new Permits(kind, semaphore, options, null, events).acquire(wait, heard),
        Permits::giveUp);
  }

  private CompletableFuture<Permits> acquire(@Nullable Duration wait, Runnable heard) {
    AcquireRequest.Builder request =
        AcquireRequest.newBuilder()
            .setName(semaphore)
            .setPermits(options.permits())
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .setNumbered(options.numbered());
    if (options.quarantine() != null) {
      request.setQuarantine(Wire.duration(options.quarantine()));
    }
    if (wait != null) {
      request.setWaitTimeout(Wire.duration(wait));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(AcquireResponse event) {
    Granted granted = event.getGranted();
    token = granted.getToken();
    number = granted.hasNumber() ? OptionalInt.of(granted.getNumber()) : OptionalInt.empty();
    return granted.getHoldId();
  }

  @Override
  void notice(AcquireResponse event) {
    PermitsListener listener = options.listener();
    switch (event.getEventCase()) {
      case QUEUED -> events.run(() -> listener.queued(event.getQueued().getPosition()));
      case SUSPENDED -> {
        Duration remaining = Wire.duration(event.getSuspended().getRemaining());
        events.run(() -> listener.suspended(remaining));
      }
      case RESUMED -> events.run(listener::resumed);
      case REVOCATION_REQUESTED -> {
        Revocation asked = Wire.revocation(event.getRevocationRequested());
        revocation = asked;
        events.run(() -> listener.revocationRequested(asked));
      }
      default -> {} // granted, or something newer than this client
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
   * Says which semaphore they are of.
   *
   * @return the semaphore's name
   */
  public String semaphore() {
    return semaphore;
  }

  /**
   * Tells these permits from all others of the semaphore. It is no fencing token: others hold
   * permits at the same time.
   *
   * @return a number that is larger than that of every earlier grant
   */
  public long token() {
    return token;
  }

  /**
   * Says which number the permit bears. No other caller has it while the permit is valid: ask
   * isValid before each use. Do not keep the number after the loss.
   *
   * @return from 0 to the semaphore's limit - 1; empty without {@link PermitsOptions#numbered}
   */
  public OptionalInt number() {
    return number;
  }

  /**
   * Says whether a caller or the sidecar has asked the holder to release the permits.
   *
   * @return the newest request to let go; empty if there was none
   */
  public Optional<Revocation> revocation() {
    return Optional.ofNullable(revocation);
  }

  /**
   * Gives all of the permits up; for the caller they are over at once, and when this returns others
   * can have them. Again, it does the same. It waits for at most about 15 seconds, even if the
   * thread is interrupted.
   *
   * @throws LostException if they were lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then they are over for
   *     the caller all the same, and for others by the time their validity would have been
   */
  public void release() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #release}, without a wait.
   *
   * @return a stage that is completed when others can have the permits, or fails as release does
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
