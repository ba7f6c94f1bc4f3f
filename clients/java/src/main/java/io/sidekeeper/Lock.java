package io.sidekeeper;

import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import io.sidekeeper.lock.v1.RevocationRequested;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A hold of a lock. Release it, also after it was lost: close does. */
public final class Lock extends Held {
  private final String name;
  private final LockOptions options;
  private final Serial events;
  private String holdId = "";
  private long fencingToken;
  private volatile @Nullable Revocation revocation;
  private Consumer<Boolean> whenSuspended = suspended -> {};

  Lock(Core core, String name, LockOptions options) {
    super(core, "lock " + name, LockLostException::new);
    this.name = name;
    this.options = options;
    this.events = new Serial(core.workers);
  }

  CompletableFuture<Lock> acquire() {
    AcquireRequest.Builder request =
        AcquireRequest.newBuilder()
            .setName(name)
            .setMode(Wire.mode(options.mode()))
            .setOwner(options.owner())
            .putAllMetadata(options.metadata());
    if (options.waitTimeout() != null) {
      request.setWaitTimeout(Wire.duration(options.waitTimeout()));
    }
    Lease lease = options.lease();
    if (lease != null) {
      request.setLeaseId(lease.id());
    }
    return Handing.out(
        this,
        () -> {
          CompletableFuture<Void> granted =
              follow(LockServiceGrpc.getAcquireMethod(), request.build(), this::hear);
          if (lease != null) {
            claim.dependsOn(lease.claim);
          }
          return granted
              .thenCompose(first -> core.holds.begin(holdId, claim))
              .thenRun(() -> claim.whenOver(this::tellLoss));
        });
  }

  private boolean hear(AcquireResponse event) {
    LockListener listener = options.listener();
    switch (event.getEventCase()) {
      case QUEUED -> {
        Queued queued =
            new Queued(
                event.getQueued().getPosition(),
                Wire.contenders(event.getQueued().getHoldersList()));
        events.run(() -> listener.queued(queued));
      }
      case GRANTED -> {
        holdId = event.getGranted().getHoldId();
        fencingToken = event.getGranted().getFencingToken();
        return true;
      }
      case SUSPENDED -> {
        Duration remaining = Wire.duration(event.getSuspended().getRemaining());
        suspend(true);
        events.run(() -> listener.suspended(remaining));
      }
      case RESUMED -> {
        suspend(false);
        events.run(listener::resumed);
      }
      case REVOCATION_REQUESTED -> {
        Revocation asked = revocationOf(event.getRevocationRequested());
        revocation = asked;
        events.run(() -> listener.revocationRequested(asked));
      }
      default -> {} // something newer than this client
    }
    return false;
  }

  private static Revocation revocationOf(RevocationRequested wire) {
    Optional<Duration> grace =
        wire.hasGrace() ? Optional.of(Wire.duration(wire.getGrace())) : Optional.empty();
    return new Revocation(wire.getRequestedBy(), wire.getReason(), grace);
  }

  private void tellLoss() {
    LostException lost = claim.lost();
    if (lost instanceof LockLostException told) {
      events.run(() -> options.listener().lost(told));
    }
  }

  private void suspend(boolean suspended) {
    synchronized (core.monitor) {
      if (claim.isSuspended() != suspended) {
        claim.setSuspended(suspended);
        whenSuspended.accept(suspended);
      }
    }
  }

  /**
   * Has a listener told whether the lock is suspended, now and whenever that changes. It must be
   * quick.
   */
  void whenSuspended(Consumer<Boolean> listener) {
    synchronized (core.monitor) {
      whenSuspended = listener;
      listener.accept(claim.isSuspended());
    }
  }

  /** Acknowledges an end that was not the caller's own wish, of which the sidecar knows. */
  @Override
  void streamEnded() {
    if (!holdId.isEmpty() && claim.lost() != null) {
      core.acknowledge(holdId);
    }
  }

  LockOptions options() {
    return options;
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
   * Says whether somebody wants the lock.
   *
   * @return the newest request to let go; empty if there was none
   */
  public Optional<Revocation> revocation() {
    return Optional.ofNullable(revocation);
  }

  /**
   * Gives the lock up; for the caller it is over at once, and when this returns the next waiter can
   * have it. Again, it does the same. It waits for at most about 15 seconds, also if the thread is
   * interrupted.
   *
   * @throws LockLostException if it was lost before
   * @throws SidekeeperException if the sidecar has not confirmed it: then it is over for the caller
   *     all the same, and for others by the time its validity would have been
   */
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

  CompletableFuture<Void> releasing() {
    return confirm(
        LockServiceGrpc.getReleaseMethod(), ReleaseRequest.newBuilder().setHoldId(holdId).build());
  }

  /** Does the same as {@link #release}. */
  @Override
  public void close() {
    release();
  }
}
