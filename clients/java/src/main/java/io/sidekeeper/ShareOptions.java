package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to share the items of a set: {@code new ShareOptions().drain(true)}.
 *
 * @param member the caller's name in the set, one segment; null for the host's name, which in
 *     Kubernetes is the pod's. A worker that is started again under its name keeps its items
 * @param capacity how many items the caller takes at most, 0 to 2,000, in proportion to that of the
 *     other members; null for 2,000
 * @param lease of the same client, for the membership and the locks; null for one of its own, and
 *     after its loss another one
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all. The keys {@code member}
 *     and {@code capacity} are taken
 * @param drain whether the items move to other members first when the share is closed, so that none
 *     has to wait for the others
 * @param drainTimeout for how long they may do so
 * @param listener is told what becomes of the share
 */
public record ShareOptions(
    @Nullable String member,
    @Nullable Integer capacity,
    @Nullable Lease lease,
    String owner,
    Map<String, String> metadata,
    boolean drain,
    Duration drainTimeout,
    ShareListener listener) {
  private static final Duration DRAIN_TIMEOUT = Duration.ofSeconds(30);
  private static final ShareListener DEFAULT = new ShareListener() {};

  /**
   * Copies what it is given.
   *
   * @param member as described above
   * @param capacity as described above
   * @param lease as described above
   * @param owner as described above
   * @param metadata as described above
   * @param drain as described above
   * @param drainTimeout as described above
   * @param listener as described above
   */
  public ShareOptions {
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.time("drainTimeout", Rules.given("drainTimeout", drainTimeout));
    Rules.given("listener", listener);
  }

  /** Shares under the host's name, with leases of its own. */
  public ShareOptions() {
    this(null, null, null, "", Map.of(), false, DRAIN_TIMEOUT, DEFAULT);
  }

  /**
   * Says under which name.
   *
   * @param member as described above
   * @return the same with this changed
   */
  public ShareOptions member(@Nullable String member) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says how many items to take.
   *
   * @param capacity as described above
   * @return the same with this changed
   */
  public ShareOptions capacity(@Nullable Integer capacity) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says which lease to use.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public ShareOptions lease(@Nullable Lease lease) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public ShareOptions owner(String owner) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public ShareOptions metadata(Map<String, String> metadata) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says whether the items move first when the share is closed.
   *
   * @param drain as described above
   * @return the same with this changed
   */
  public ShareOptions drain(boolean drain) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says for how long they may do so.
   *
   * @param drainTimeout as described above
   * @return the same with this changed
   */
  public ShareOptions drainTimeout(Duration drainTimeout) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }

  /**
   * Says who is told what becomes of the share.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public ShareOptions listener(ShareListener listener) {
    return new ShareOptions(
        member, capacity, lease, owner, metadata, drain, drainTimeout, listener);
  }
}
