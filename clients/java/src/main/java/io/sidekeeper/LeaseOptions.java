package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to open a lease: {@code new LeaseOptions().ttl(Duration.ofSeconds(10))}.
 *
 * @param ttl how long the ensemble keeps it when it hears nothing of it; null for what the sidecar
 *     is set to
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param waitTimeout how long to wait for a sidecar or an ensemble that is away: zero tries once,
 *     null waits for 10 seconds
 */
public record LeaseOptions(
    @Nullable Duration ttl,
    String owner,
    Map<String, String> metadata,
    @Nullable Duration waitTimeout) {
  /**
   * Copies what it is given.
   *
   * @param ttl as described above
   * @param owner as described above
   * @param metadata as described above
   * @param waitTimeout as described above
   */
  public LeaseOptions {
    Rules.time("ttl", ttl);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.time("waitTimeout", waitTimeout);
  }

  /** Leaves everything to the sidecar. */
  public LeaseOptions() {
    this(null, "", Map.of(), null);
  }

  /**
   * Says how long the lease outlives silence.
   *
   * @param ttl as described above
   * @return the same with this changed
   */
  public LeaseOptions ttl(@Nullable Duration ttl) {
    return new LeaseOptions(ttl, owner, metadata, waitTimeout);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public LeaseOptions owner(String owner) {
    return new LeaseOptions(ttl, owner, metadata, waitTimeout);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public LeaseOptions metadata(Map<String, String> metadata) {
    return new LeaseOptions(ttl, owner, metadata, waitTimeout);
  }

  /**
   * Says how long to wait for a sidecar or an ensemble that is away.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public LeaseOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new LeaseOptions(ttl, owner, metadata, waitTimeout);
  }
}
