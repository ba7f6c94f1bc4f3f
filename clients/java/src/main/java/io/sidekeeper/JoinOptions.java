package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to join a group: {@code new JoinOptions().metadata(Map.of("address", "10.0.0.1:80"))}.
 *
 * @param lease to be a member with; null for a lease that lives as long as the membership
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata what others shall know, such as an address: at most 1 KiB in all
 * @param onConflict what to do about a member of the same name; reject unless another is given
 * @param waitTimeout how long to wait for a sidecar or an ensemble that is away, and, with WAIT and
 *     REPLACE, for the name: zero tries once, null waits 10 seconds each time for what is away, and
 *     for ever for the name
 */
public record JoinOptions(
    @Nullable Lease lease,
    String owner,
    Map<String, String> metadata,
    OnConflict onConflict,
    @Nullable Duration waitTimeout) {
  /**
   * Copies what it is given.
   *
   * @param lease as described above
   * @param owner as described above
   * @param metadata as described above
   * @param onConflict as described above
   * @param waitTimeout as described above
   */
  public JoinOptions {
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("onConflict", onConflict);
    Rules.time("waitTimeout", waitTimeout);
  }

  /** Joins with a lease of its own, if the name is free. */
  public JoinOptions() {
    this(null, "", Map.of(), OnConflict.REJECT, null);
  }

  /**
   * Says which lease to be a member with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public JoinOptions lease(@Nullable Lease lease) {
    return new JoinOptions(lease, owner, metadata, onConflict, waitTimeout);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public JoinOptions owner(String owner) {
    return new JoinOptions(lease, owner, metadata, onConflict, waitTimeout);
  }

  /**
   * Says what others shall know.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public JoinOptions metadata(Map<String, String> metadata) {
    return new JoinOptions(lease, owner, metadata, onConflict, waitTimeout);
  }

  /**
   * Says what to do about a member of the same name.
   *
   * @param onConflict as described above
   * @return the same with this changed
   */
  public JoinOptions onConflict(OnConflict onConflict) {
    return new JoinOptions(lease, owner, metadata, onConflict, waitTimeout);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public JoinOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new JoinOptions(lease, owner, metadata, onConflict, waitTimeout);
  }
}
