package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to enter a double barrier: {@code new BarrierOptions().waitTimeout(Duration.ofMinutes(5))}.
 *
 * @param lease of the same client, to stand at the barrier with; null for a lease that lives as
 *     long as the entry does
 * @param waitTimeout how long to wait for the others, and for a sidecar or an ensemble that is
 *     away: more than zero; null waits for ever for the others, and 10 seconds each time for what
 *     is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param listener is told what becomes of the caller at the barrier
 */
public record BarrierOptions(
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    BarrierListener listener) {
  private static final BarrierListener DEAF = new BarrierListener() {};

  /**
   * Copies what it is given.
   *
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param listener as described above
   */
  public BarrierOptions {
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
  }

  /** Stands at the barrier with a lease of its own, and waits for ever. */
  public BarrierOptions() {
    this(null, null, "", Map.of(), DEAF);
  }

  /**
   * Says which lease to stand at the barrier with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public BarrierOptions lease(@Nullable Lease lease) {
    return new BarrierOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public BarrierOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new BarrierOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public BarrierOptions owner(String owner) {
    return new BarrierOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public BarrierOptions metadata(Map<String, String> metadata) {
    return new BarrierOptions(lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who is told what becomes of the caller.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public BarrierOptions listener(BarrierListener listener) {
    return new BarrierOptions(lease, waitTimeout, owner, metadata, listener);
  }
}
