import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** One permit of a semaphore whose limit is a SharedCount beside it. */
final class Permits extends Untimed {
    private final InterProcessSemaphoreV2 semaphore;
    private Lease held;

    Permits(CuratorFramework client, String path) throws Exception {
        SharedCount limit = new SharedCount(client, path + ".limit", 1); // it is there, with another number
        limit.start();
        semaphore = new InterProcessSemaphoreV2(client, path, limit);
    }

    @Override
    public void acquire() throws Exception {
        held = semaphore.acquire();
    }

    @Override
    public void release() {
        semaphore.returnLease(held);
    }
}
