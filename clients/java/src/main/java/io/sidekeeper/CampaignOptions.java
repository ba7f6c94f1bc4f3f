package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How to campaign: {@code new CampaignOptions().value("host-1:8080")}.
 *
 * @param value what the leader shows, such as its address: at most 1 KiB
 * @param lease of the same client, to campaign with; null for a lease that lives as long as the
 *     campaign and the term
 * @param waitTimeout how long to wait to be elected, and for a sidecar or an ensemble that is away:
 *     zero tries once, null waits for ever to be elected, and 10 seconds each time for what is away
 * @param metadata more about the candidate, for people: at most 1 KiB in all
 * @param listener is told what becomes of the candidacy and the term
 */
public record CampaignOptions(
    String value,
    @Nullable Lease lease,
    @Nullable Duration waitTimeout,
    Map<String, String> metadata,
    CampaignListener listener) {
  private static final CampaignListener DEAF = new CampaignListener() {};

  /**
   * Copies what it is given.
   *
   * @param value as described above
   * @param lease as described above
   * @param waitTimeout as described above
   * @param metadata as described above
   * @param listener as described above
   */
  public CampaignOptions {
    Rules.given("value", value);
    Rules.time("waitTimeout", waitTimeout);
    metadata = Rules.labels(metadata);
    Rules.given("listener", listener);
  }

  /** Shows nothing, with a lease of its own, and waits for ever. */
  public CampaignOptions() {
    this("", null, null, Map.of(), DEAF);
  }

  /**
   * Says what the leader shows.
   *
   * @param value as described above
   * @return the same with this changed
   */
  public CampaignOptions value(String value) {
    return new CampaignOptions(value, lease, waitTimeout, metadata, listener);
  }

  /**
   * Says which lease to campaign with.
   *
   * @param lease as described above
   * @return the same with this changed
   */
  public CampaignOptions lease(@Nullable Lease lease) {
    return new CampaignOptions(value, lease, waitTimeout, metadata, listener);
  }

  /**
   * Says how long to wait.
   *
   * @param waitTimeout as described above
   * @return the same with this changed
   */
  public CampaignOptions waitTimeout(@Nullable Duration waitTimeout) {
    return new CampaignOptions(value, lease, waitTimeout, metadata, listener);
  }

  /**
   * Says more about the candidate.
   *
   * @param metadata as described above
   * @return the same with this changed
   */
  public CampaignOptions metadata(Map<String, String> metadata) {
    return new CampaignOptions(value, lease, waitTimeout, metadata, listener);
  }

  /**
   * Says who is told what becomes of the candidacy and the term.
   *
   * @param listener as described above
   * @return the same with this changed
   */
  public CampaignOptions listener(CampaignListener listener) {
    return new CampaignOptions(value, lease, waitTimeout, metadata, listener);
  }
}
