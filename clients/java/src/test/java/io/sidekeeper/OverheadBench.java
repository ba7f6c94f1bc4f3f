package io.sidekeeper;

import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.LockServiceGrpc.LockServiceBlockingStub;
import io.sidekeeper.lock.v1.ReleaseRequest;
import java.util.Arrays;
import java.util.Iterator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What the client costs over the bare stubs, in turns on one sidecar. It measures and asserts
 * nothing.
 */
@Tag("bench")
class OverheadBench {
  private static final int WARM_UP = 2_000;
  private static final int PAIRS = 5_000;

  private interface Pair {
    void run() throws InterruptedException;
  }

  @Test
  void acquireAndRelease() throws InterruptedException {
    Workers workers = new Workers();
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address);
        Lease lease = client.openLease(new LeaseOptions())) {
      LockOptions options = new LockOptions().lease(lease);
      Transport transport = Transport.open(sidecar.address, null, workers);
      LockServiceBlockingStub stub = LockServiceGrpc.newBlockingStub(transport.channel);
      long[] ours = new long[PAIRS];
      long[] bare = new long[PAIRS];
      long[] leased = new long[PAIRS];
      for (int i = -WARM_UP; i < PAIRS; i++) {
        long one = took(() -> client.acquire("ours").release());
        long other = took(() -> bare(stub));
        long ofLease = took(() -> client.acquire("leased", options).release());
        if (i >= 0) {
          ours[i] = one;
          bare[i] = other;
          leased[i] = ofLease;
        }
      }
      transport.close();
      System.out.printf(
          "a pair of acquire and release takes %.0f µs with the client and %.0f µs with the bare stubs, "
              + "which have no validity: %.2f times; with a lease, %.0f µs%n",
          median(ours), median(bare), median(ours) / median(bare), median(leased));
    } finally {
      workers.close();
    }
  }

  private static void bare(LockServiceBlockingStub stub) {
    Iterator<AcquireResponse> events =
        stub.acquire(AcquireRequest.newBuilder().setName("bare").build());
    String hold = events.next().getGranted().getHoldId();
    stub.release(ReleaseRequest.newBuilder().setHoldId(hold).build());
    while (events.hasNext()) {
      events.next();
    }
  }

  private static long took(Pair pair) throws InterruptedException {
    long began = System.nanoTime();
    pair.run();
    return System.nanoTime() - began;
  }

  private static double median(long[] times) {
    long[] sorted = times.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2] / 1e3;
  }
}
