package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to do work once: {@code new OnceOptions().keep(Duration.ofDays(1)).onLoss(Policy.SKIP)}.
 *
 * @param perName whether the work of different keys does not overlap: its lock is that of the name,
 *     and otherwise {@code name/key}
 * @param keep how long the record stands after the work has ended: at least a second; null for a
 *     week
 * @param onLoss what follows an attempt that was lost
 * @param onFailure what follows an attempt that has failed
 * @param attempts how many a key has at most, lost and failed ones included: 1 to 1,000
 * @param lease of the same client, to hold the lock with; null for a lease that lives as long as
 *     the attempt
 * @param waitTimeout how long to wait for the lock, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever for the lock, and 10 seconds each time for what is away
 * @param owner who the caller is, for people: at most 128 bytes
 * @param metadata more about the caller, for people: at most 1 KiB in all
 * @param listener is told what becomes of the attempt and its lock
 */
public record OnceOptions(
    boolean perName,
    @Nullable Duration keep,
    Policy onLoss,
    Policy onFailure,
    int attempts,
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata,
    LockListener listener) {
  private static final LockListener DEAF = new LockListener() {};

  /**
   * Copies what it is given.
   *
   * @param perName as described above
   * @param keep as described above
   * @param onLoss as described above
   * @param onFailure as described above
   * @param attempts as described above
   * @param lease as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   * @param listener as described above
   */
  public OnceOptions {
    Rules.time("keep", keep);
    Rules.given("onLoss", onLoss);
    Rules.given("onFailure", onFailure);
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
  }

  /** Has each key its own lock, waits for ever, and makes up to three attempts. */
  public OnceOptions() {
    this(false, null, Policy.RETRY, Policy.RETRY, 3, null, null, "", Map.of(), DEAF);
  }

  /**
   * Says whether the work of different keys does not overlap.
   *
   * @param perName as described above
   * @return the same with this changed
   */
  public OnceOptions perName(boolean perName) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says how long the record stands.
   *
   * @param keep as described above
   * @return the same with this changed
   */
  public OnceOptions keep(@Nullable Duration keep) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says what follows an attempt that was lost.
   *
   * @param onLoss as described above
   * @return the same with this changed
   */
  public OnceOptions onLoss(Policy onLoss) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says what follows an attempt that has failed.
   *
   * @param onFailure as described above
   * @return the same with this changed
   */
  public OnceOptions onFailure(Policy onFailure) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says how many attempts a key has.
   *
   * @param attempts as described above
   * @return the same with this changed
   */
  public OnceOptions attempts(int attempts) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says which lease to hold the lock with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public OnceOptions lease(@Nullable Lease lease) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public OnceOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who the caller is.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public OnceOptions owner(String owner) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says more about the caller.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public OnceOptions metadata(Map<String, String> metadata) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }

  /**
   * Says who is told what becomes of the attempt.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public OnceOptions listener(LockListener listener) {
    return new OnceOptions(
        perName, keep, onLoss, onFailure, attempts, lease, waitTimeout, owner, metadata, listener);
  }
}
