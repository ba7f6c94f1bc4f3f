package io.sidekeeper;

import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lock.v1.AcquireAllRequest;
import io.sidekeeper.lock.v1.AcquireAllResponse;
import io.sidekeeper.lock.v1.GrantedLock;
import io.sidekeeper.lock.v1.QueuedLock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Several locks that are held as one hold: what ends one ends all. Release them, also after they
 * were lost: close does.
 */
public final class Locks extends Excluding<AcquireAllRequest, AcquireAllResponse> {
  private final List<WantedLock> wanted;
  private final LocksOptions options;
  private final Serial events;
  private String holdId = "";
  private List<Ticket> tickets = List.of();
  private volatile @Nullable Revocation revocation;

  private Locks(
      Kind<AcquireAllRequest, AcquireAllResponse> kind,
      List<WantedLock> wanted,
      LocksOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "locks " + namesOf(wanted), LockLostException::new, options.lease(), own);
    this.wanted = wanted;
    this.options = options;
    this.events = events;
  }

  private static String namesOf(List<WantedLock> wanted) {
    return wanted.stream().map(WantedLock::name).collect(Collectors.joining(", "));
  }

  /** Acquires them, as {@link Lock#acquire} does one. */
  static CompletableFuture<Locks> acquire(
      Kind<AcquireAllRequest, AcquireAllResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      List<WantedLock> locks,
      LocksOptions options) {
    Rules.given("options", options);
    List<WantedLock> wanted = Rules.all("locks", locks);
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
                    (own, left) ->
                        new Locks(kind, wanted, options, own, events).acquire(left, heard))
                : new Locks(kind, wanted, options, null, events).acquire(wait, heard),
        Locks::giveUp);
  }

  private CompletableFuture<Locks> acquire(@Nullable Duration wait, Runnable heard) {
    AcquireAllRequest.Builder request =
        AcquireAllRequest.newBuilder()
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .setLeaseId(leaseId());
    for (WantedLock lock : wanted) {
      request.addLocksBuilder().setName(lock.name()).setMode(Wire.mode(lock.mode()));
    }
    if (wait != null) {
      request.setWaitTimeout(Wire.duration(wait));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(AcquireAllResponse event) {
    List<Ticket> granted = new ArrayList<>();
    for (GrantedLock lock : event.getGranted().getLocksList()) {
      granted.add(new Ticket(lock.getName(), lock.getFencingToken()));
    }
    tickets = List.copyOf(granted);
    holdId = event.getGranted().getHoldId();
    return holdId;
  }

  @Override
  void notice(AcquireAllResponse event) {
    LocksListener listener = options.listener();
    switch (event.getEventCase()) {
      case QUEUED -> {
        Map<String, Integer> ahead = new LinkedHashMap<>();
        for (QueuedLock lock : event.getQueued().getLocksList()) {
          ahead.put(lock.getName(), lock.getPosition());
        }
        events.run(() -> listener.queued(ahead));
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
    claim.whenOver(
        () -> {
          LostException lost = claim.lost();
          if (lost instanceof LockLostException told) {
            events.run(() -> options.listener().lost(told));
          }
        });
  }

  @Override
  @Nullable Duration suspensionGrace() {
    return options.suspensionGrace();
  }

  /** That of each of them: their places were made at once. */
  @Override
  long token() {
    return tickets.get(0).fencingToken();
  }

  @Override
  List<Ticket> exclusive() {
    List<Ticket> exclusive = new ArrayList<>(tickets);
    for (WantedLock lock : wanted) {
      exclusive.removeIf(ticket -> lock.mode() == Mode.READ && ticket.lock().equals(lock.name()));
    }
    return List.copyOf(exclusive);
  }

  /**
   * Says which locks they are.
   *
   * @return their names, as they were asked for
   */
  public List<String> names() {
    return wanted.stream().map(WantedLock::name).toList();
  }

  /**
   * Names the one hold in calls that are made without this client.
   *
   * @return 32 hexadecimal digits, which are a secret
   */
  @Override
  public String holdId() {
    return holdId;
  }

  /**
   * Orders the grants of each lock; see {@link Lock#fencingToken}.
   *
   * @param name of one of the locks
   * @return its token; 0 if it is none of these locks
   */
  public long fencingToken(String name) {
    return tickets.stream()
        .filter(ticket -> ticket.lock().equals(name))
        .mapToLong(Ticket::fencingToken)
        .findFirst()
        .orElse(0);
  }

  /**
   * Names the holds for others, who guard with them what they write.
   *
   * @return what the holder hands on, one for each lock, as they were asked for
   */
  public List<Ticket> tickets() {
    return tickets;
  }

  /**
   * Guards with all of the locks what this thread writes with their client, until the scope is
   * closed; see {@link Lock#guard}.
   *
   * @return the scope; close it on this thread
   */
  public GuardScope guard() {
    return openGuard();
  }

  /**
   * Says whether a caller or the sidecar has asked the holder to release any of the locks.
   *
   * @return the newest request to let go of all; empty if there was none
   */
  public Optional<Revocation> revocation() {
    return Optional.ofNullable(revocation);
  }

  /**
   * Gives all of the locks up; for the caller they are over at once, and when this returns the next
   * waiters can have them. Again, it does the same. It waits for at most about 15 seconds, even if
   * the thread is interrupted.
   *
   * @throws LockLostException if they were lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then they are over for
   *     the caller all the same, and for others by the time their validity would have been
   */
  @Override
  public void release() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #release}, without a wait.
   *
   * @return a stage that is completed when the next waiters can have the locks, or fails as release
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
