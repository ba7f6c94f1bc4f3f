package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to claim a lock: {@code new ClaimOptions().claimId(id).waitTimeout(Duration.ofMinutes(5))}.
 *
 * @param claimId 32 hexadecimal digits, 128 random bits: a secret, for a caller that knows it owns
 *     the claim. A caller that stores it before the call can ask again, or release the claim,
 *     whatever became of the call; null for a new one
 * @param mode how to hold the lock; exclusive unless another is given
 * @param waitTimeout how long to wait for the grant, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever
 * @param owner who holds the lock, for people: at most 128 bytes
 * @param metadata more about the holder, for people: at most 1 KiB in all
 */
public record ClaimOptions(
    @Nullable String claimId,
    Mode mode,
    @Nullable Duration waitTimeout,
    String owner,
    Map<String, String> metadata) {
  /**
   * Copies what it is given.
   *
   * @param claimId as described above
   * @param mode as described above
   * @param waitTimeout as described above
   * @param owner as described above
   * @param metadata as described above
   */
  public ClaimOptions {
    Rules.given("mode", mode);
    Rules.time("waitTimeout", waitTimeout);
    Rules.given("owner", owner);
    metadata = Rules.labels(metadata);
  }

  /** Leaves out the id, which is a secret. */
  @Override
  public String toString() {
    return "ClaimOptions[mode=%s, waitTimeout=%s, owner=%s]".formatted(mode, waitTimeout, owner);
  }

  /** Is exclusive, with a new id, and waits for ever. */
  public ClaimOptions() {
    this(null, Mode.EXCLUSIVE, null, "", Map.of());
  }

  /**
   * Says by which id to know the claim.
   *
   * @param claimId as described above
   * @return the same with this changed
   */
  public ClaimOptions claimId(@Nullable String claimId) {
    return new ClaimOptions(claimId, mode, waitTimeout, owner, metadata);
  }

  /**
   * Says how to hold the lock.
   *
   * @param mode as described above
   * @return the same with this changed
   */
  public ClaimOptions mode(Mode mode) {
    return new ClaimOptions(claimId, mode, waitTimeout, owner, metadata);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public ClaimOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new ClaimOptions(claimId, mode, waitTimeout, owner, metadata);
  }

  /**
   * Says who holds the lock.
   *
   * @param owner as described above
   * @return the same with this changed
   */
  public ClaimOptions owner(String owner) {
    return new ClaimOptions(claimId, mode, waitTimeout, owner, metadata);
  }

  /**
   * Says more about the holder.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public ClaimOptions metadata(Map<String, String> metadata) {
    return new ClaimOptions(claimId, mode, waitTimeout, owner, metadata);
  }
}
