package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to acquire several locks at once: {@code new LocksOptions().waitTimeout(Duration.ZERO)}.
 *
 * @param lease of the same client, to hold the locks with; null for a lease that lives as long as
 *     they do
 * @param waitTimeout how long to wait for the grant of all, and for a sidecar or an ensemble that
 *     is away: zero tries once, null waits for ever for the grant, and 10 seconds each time for
 *     what is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param listener is told what becomes of the locks
 * @param suspensionGrace with {@link Client#withLocks}, for how long the locks may be suspended
 *     until the body is stopped; null for until they are lost
 */
public record LocksOptions(
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    LocksListener listener,
    @Nullable Duration suspensionGrace) {
  private static final LocksListener DEAF = new LocksListener() {};

  /**
   * Copies what it is given.
   *
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param listener as described above
   * @param suspensionGrace as described above
   */
  public LocksOptions {
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
    Rules.time("suspensionGrace", suspensionGrace);
  }

  /** Acquires them with a lease of their own, and waits for ever. */
  public LocksOptions() {
    this(null, null, "", Map.of(), DEAF, null);
  }

  /**
   * Says which lease to hold the locks with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public LocksOptions lease(@Nullable Lease lease) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public LocksOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public LocksOptions owner(String owner) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public LocksOptions metadata(Map<String, String> metadata) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }

  /**
   * Says who is told what becomes of the locks.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public LocksOptions listener(LocksListener listener) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }

  /**
   * Says how long the body of the locks goes on while they are suspended.
   *
   * @param suspensionGrace as described above
   * @return the same with this changed
   */
  public LocksOptions suspensionGrace(@Nullable Duration suspensionGrace) {
    return new LocksOptions(lease, waitTimeout, owner, metadata, listener, suspensionGrace);
  }
}
