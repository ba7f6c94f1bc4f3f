package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to acquire a lock: {@code new LockOptions().owner("billing").waitTimeout(Duration.ZERO)}.
 *
 * @param mode how to hold it; exclusive unless another is given
 * @param lease to hold the lock with; null for a lease that lives as long as the lock
 * @param waitTimeout how long to wait for the grant, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever for the grant, and 10 seconds each time for what is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param listener is told what becomes of the lock
 * @param suspensionGrace with {@link Client#withLock} and what is built on it, for how long the
 *     lock may be suspended until the body is stopped; null for until it is lost
 * @param lockDelay for how long no caller is granted the lock after this hold, unless it is
 *     released: at most a minute, and not with {@link Mode#READ}; in this time what the holder has
 *     sent before arrives, for resources that cannot compare fencing tokens; null for none
 * @param detectDeadlock whether to refuse with DEADLOCK if the lease waits in a circle: for a lock
 *     whose holder waits for another one, and so on, until one waits for a lock of the lease; of
 *     those that ask, the one that began to wait last is told, within three seconds; set it where
 *     nothing else goes on with the lease meanwhile: it counts as one caller; without a lease it
 *     does nothing
 */
public record LockOptions(
    Mode mode,
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    LockListener listener,
    @Nullable Duration suspensionGrace,
    @Nullable Duration lockDelay,
    boolean detectDeadlock) {
  private static final LockListener DEAF = new LockListener() {};

  /**
   * Copies what it is given.
   *
   * @param mode as described above
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param listener as described above
   * @param suspensionGrace as described above
   * @param lockDelay as described above
   * @param detectDeadlock as described above
   */
  public LockOptions {
    Rules.given("mode", mode);
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
    Rules.time("suspensionGrace", suspensionGrace);
    Rules.time("lockDelay", lockDelay);
  }

  /** Is exclusive, with a lease of its own, and waits for ever. */
  public LockOptions() {
    this(Mode.EXCLUSIVE, null, null, "", Map.of(), DEAF, null, null, false);
  }

  /**
   * Says how to hold the lock.
   *
   * @param mode as described above
   * @return the same with this changed
   */
  public LockOptions mode(Mode mode) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says which lease to hold the lock with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public LockOptions lease(@Nullable Lease lease) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public LockOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public LockOptions owner(String owner) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public LockOptions metadata(Map<String, String> metadata) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says who is told what becomes of the lock.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public LockOptions listener(LockListener listener) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says how long the body of a lock goes on while it is suspended.
   *
   * @param suspensionGrace as described above
   * @return the same with this changed
   */
  public LockOptions suspensionGrace(@Nullable Duration suspensionGrace) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says for how long the lock is kept from others after it was lost.
   *
   * @param lockDelay as described above
   * @return the same with this changed
   */
  public LockOptions lockDelay(@Nullable Duration lockDelay) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }

  /**
   * Says whether to refuse if the lease waits in a circle.
   *
   * @param detectDeadlock as described above
   * @return the same with this changed
   */
  public LockOptions detectDeadlock(boolean detectDeadlock) {
    return new LockOptions(
        mode,
        lease,
        waitTimeout,
        owner,
        metadata,
        listener,
        suspensionGrace,
        lockDelay,
        detectDeadlock);
  }
}
