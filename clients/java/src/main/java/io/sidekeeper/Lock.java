package io.sidekeeper;

import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A hold of a lock. Release it, also after it was lost: close does. */
public final class Lock extends Excluding<AcquireRequest, AcquireResponse> {
  private final String name;
  private final LockOptions options;
  private final Serial events;
  private String holdId = "";
  private long fencingToken;
  private volatile @Nullable Revocation revocation;

  private Lock(
      Kind<AcquireRequest, AcquireResponse> kind,
      String name,
      LockOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "lock " + name, LockLostException::new, options.lease(), own);
    this.name = name;
    this.options = options;
    this.events = events;
  }

  /**
   * Acquires it, also from a sidecar that is away for a time. Without a lease it gets one of its
   * own, which may outlive the sidecar's process; where none does, its stream is its lease, which
   * costs a message less.
   */
  static CompletableFuture<Lock> acquire(
      Kind<AcquireRequest, AcquireResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String name,
      LockOptions options) {
    Rules.given("name", name);
    Rules.given("options", options);
    Serial events = new Serial(kind.core().workers);
    boolean alone = options.lease() == null && kind.core().isOnSocket();
    LeaseOptions opening = new LeaseOptions().owner(options.owner()).metadata(options.metadata());
    return Absence.through(
        kind.core(),
        options.waitTimeout(),
        options.lease(),
        (wait, heard) ->
            alone
                ? begin(
                    leases,
                    opening,
                    wait,
                    heard,
                    (own, left) -> new Lock(kind, name, options, own, events).acquire(left, heard))
                : new Lock(kind, name, options, null, events).acquire(wait, heard),
        Lock::giveUp);
  }

  private CompletableFuture<Lock> acquire(@Nullable Duration wait, Runnable heard) {
    AcquireRequest.Builder request =
        AcquireRequest.newBuilder()
            .setName(name)
            .setMode(Wire.mode(options.mode()))
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .setLeaseId(leaseId())
            .setDetectDeadlock(options.detectDeadlock());
    if (wait != null) {
      request.setWaitTimeout(Wire.duration(wait));
    }
    if (options.lockDelay() != null) {
      request.setLockDelay(Wire.duration(options.lockDelay()));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(AcquireResponse event) {
    holdId = event.getGranted().getHoldId();
    fencingToken = event.getGranted().getFencingToken();
    return holdId;
  }

  @Override
  void notice(AcquireResponse event) {
    LockListener listener = options.listener();
    switch (event.getEventCase()) {
      case QUEUED -> {
        Queued queued =
            new Queued(
                event.getQueued().getPosition(),
                Wire.contenders(event.getQueued().getHoldersList()));
        events.run(() -> listener.queued(queued));
      }
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
    claim.whenOver(this::tellLoss);
  }

  private void tellLoss() {
    LostException lost = claim.lost();
    if (lost instanceof LockLostException told) {
      events.run(() -> options.listener().lost(told));
    }
  }

  @Override
  @Nullable Duration suspensionGrace() {
    return options.suspensionGrace();
  }

  @Override
  long token() {
    return fencingToken;
  }

  @Override
  List<Ticket> exclusive() {
    return options.mode() == Mode.READ ? List.of() : List.of(ticket());
  }

  /**
   * Says which lock it is.
   *
   * @return the lock's name
   */
  public String name() {
    return name;
  }

  /**
   * Names the hold in calls that are made without this client.
   *
   * @return 32 hexadecimal digits, which are a secret
   */
  @Override
  public String holdId() {
    return holdId;
  }

  /**
   * Orders the grants of this lock: hand it to whatever the lock protects, and let that refuse
   * smaller ones.
   *
   * @return a number that is larger than those of all earlier grants that this one excludes
   */
  public long fencingToken() {
    return fencingToken;
  }

  /**
   * Names the hold for others, who guard with it what they write.
   *
   * @return what the holder hands on
   */
  public Ticket ticket() {
    return new Ticket(name, fencingToken);
  }

  /**
   * Guards with the lock what this thread writes with the lock's client, until the scope is closed:
   * put, delete and commit of the configuration, the numbers of a sequence unless they are relaxed,
   * and a member's joining and updates. The ensemble carries that out only while the lock is held,
   * in one transaction with the write, at no cost; otherwise it is GuardLostException, or a
   * SidekeeperException with the reason HOLD_NOT_FOUND after the sidecar has restarted. What
   * another client writes is not guarded by it: hand on a ticket.
   *
   * @return the scope; close it on this thread
   */
  public GuardScope guard() {
    return openGuard();
  }

  /**
   * Says whether a caller or the sidecar has asked the holder to release the lock.
   *
   * @return the newest request to let go; empty if there was none
   */
  public Optional<Revocation> revocation() {
    return Optional.ofNullable(revocation);
  }

  /**
   * Gives the lock up; for the caller it is over at once, and when this returns the next waiter can
   * have it. Again, it does the same. It waits for at most about 15 seconds, even if the thread is
   * interrupted.
   *
   * @throws LockLostException if it was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then it is over for
   *     the caller all the same, and for others by the time its validity would have been
   */
  @Override
  public void release() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #release}, without a wait.
   *
   * @return a stage that is completed when the next waiter can have the lock, or fails as release
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
