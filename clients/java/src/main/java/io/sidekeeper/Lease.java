package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.CloseRequest;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.OpenRequest;
import io.sidekeeper.lease.v1.OpenResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * Owns what is acquired in its name: when it ends, all of that is given up at once. Close it, also
 * after it was lost.
 */
public final class Lease extends Held {
  private String id = "";
  private Duration ttl = Duration.ZERO;

  Lease(Core core) {
    super(core, "lease", LostException::new);
  }

  CompletableFuture<Lease> open(LeaseOptions options) {
    OpenRequest.Builder request =
        OpenRequest.newBuilder().setOwner(options.owner()).putAllMetadata(options.metadata());
    if (options.ttl() != null) {
      request.setTtl(Wire.duration(options.ttl()));
    }
    return Handing.out(
        this,
        () ->
            follow(LeaseServiceGrpc.getOpenMethod(), request.build(), this::hear)
                .thenCompose(opened -> core.terms.begin(id, claim)));
  }

  private boolean hear(OpenResponse event) {
    switch (event.getEventCase()) {
      case OPENED -> {
        id = event.getOpened().getLeaseId();
        ttl = Wire.duration(event.getOpened().getTtl());
        return true;
      }
      case SUSPENDED -> claim.setSuspended(true);
      case RESUMED -> claim.setSuspended(false);
      default -> {} // something newer than this client
    }
    return false;
  }

  /**
   * Names it in calls that are made without this client.
   *
   * @return 32 hexadecimal digits, which are a secret
   */
  public String id() {
    return id;
  }

  /**
   * Says for how long the ensemble keeps it when it hears nothing of it.
   *
   * @return the time that the ensemble granted
   */
  public Duration ttl() {
    return ttl;
  }

  /**
   * Ends the lease; for the caller, it and all acquired in its name are over at once. When this
   * returns, all of it is gone from the ensemble. Again, it does the same. It waits for at most
   * about 15 seconds, also if the thread is interrupted.
   *
   * @throws LostException if it was lost before
   * @throws SidekeeperException if the sidecar has not confirmed it: then it is over for the caller
   *     all the same, and for others by the time its validity would have been
   */
  @Override
  public void close() {
    Waiting.awaitAnyway(closing());
  }

  /**
   * Does the same as {@link #close}, without a wait.
   *
   * @return a stage that is completed when all of it is gone, or fails as close does
   */
  public CompletableFuture<Void> closeAsync() {
    return core.workers.hand(closing());
  }

  CompletableFuture<Void> closing() {
    return confirm(
        LeaseServiceGrpc.getCloseMethod(), CloseRequest.newBuilder().setLeaseId(id).build());
  }
}
