package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to work for a schedule: {@code new WorkOptions().owner("reports-1")}.
 *
 * @param lease of the same client, to hold the lock with; null for a lease that lives as long as
 *     the attempt
 * @param waitTimeout how long to wait for a tick, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever for a tick, and 10 seconds each time for what is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param listener is told what becomes of the attempt and its lock
 */
public record WorkOptions(
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    LockListener listener) {
  private static final LockListener DEAF = new LockListener() {};

  /**
   * Copies what it is given.
   *
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param listener as described above
   */
  public WorkOptions {
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
  }

  /** Waits for ever, with a lease of its own. */
  public WorkOptions() {
    this(null, null, "", Map.of(), DEAF);
  }

  /**
   * Says which lease to hold the lock with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public WorkOptions lease(@Nullable Lease lease) {
    return new WorkOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public WorkOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new WorkOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public WorkOptions owner(String owner) {
    return new WorkOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public WorkOptions metadata(Map<String, String> metadata) {
    return new WorkOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who is told what becomes of the attempt.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public WorkOptions listener(LockListener listener) {
    return new WorkOptions(lease, waitTimeout, owner, metadata, listener);
  }
}
