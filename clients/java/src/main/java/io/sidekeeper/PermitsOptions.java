package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to acquire permits: {@code new PermitsOptions().permits(2).waitTimeout(Duration.ZERO)}.
 *
 * @param permits how many, all at once: 1 to 64
 * @param lease of the same client, to hold the permits with; null for a lease that lives as long as
 *     they do
 * @param waitTimeout how long to wait for the grant, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever for the grant, and 10 seconds each time for what is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param numbered whether the permit bears a number, see {@link Permits#number}; it goes with one
 *     permit
 * @param quarantine for how long the number rests if it is lost: from zero to 24 hours; null for 1
 *     minute. A number that its holder releases is free at once
 * @param listener is told what becomes of the permits
 */
public record PermitsOptions(
    int permits,
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    boolean numbered,
    @Nullable Duration quarantine,
    PermitsListener listener) {
  private static final PermitsListener DEAF = new PermitsListener() {};

  /**
   * Copies what it is given.
   *
   * @param permits as described above
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param numbered as described above
   * @param quarantine as described above
   * @param listener as described above
   */
  public PermitsOptions {
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.time("quarantine", quarantine);
    Rules.given("listener", listener);
  }

  /** Takes one, with a lease of its own, and waits for ever. */
  public PermitsOptions() {
    this(1, null, null, "", Map.of(), false, null, DEAF);
  }

  /**
   * Says how many to take.
   *
   * @param permits as described above
   * @return the same with this changed
   */
  public PermitsOptions permits(int permits) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says which lease to hold the permits with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public PermitsOptions lease(@Nullable Lease lease) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public PermitsOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public PermitsOptions owner(String owner) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public PermitsOptions metadata(Map<String, String> metadata) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says whether the permit bears a number.
   *
   * @param numbered as described above
   * @return the same with this changed
   */
  public PermitsOptions numbered(boolean numbered) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says for how long the number rests if it is lost.
   *
   * @param quarantine as described above
   * @return the same with this changed
   */
  public PermitsOptions quarantine(@Nullable Duration quarantine) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }

  /**
   * Says who is told what becomes of the permits.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public PermitsOptions listener(PermitsListener listener) {
    return new PermitsOptions(
        permits, lease, waitTimeout, owner, metadata, numbered, quarantine, listener);
  }
}
