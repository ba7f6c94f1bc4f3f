import java.io.IOException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;

/** Leads by the recipe of LeaderLatch. */
final class Latched extends Untimed {
    private final CuratorFramework client;
    private final String path;
    private LeaderLatch latch;

    Latched(CuratorFramework client, String path) {
        this.client = client;
        this.path = path;
    }

    @Override
    public void acquire() throws Exception {
        latch = new LeaderLatch(client, path);
        latch.start();
        latch.await();
    }

    @Override
    public void release() throws IOException {
        latch.close();
    }
}
