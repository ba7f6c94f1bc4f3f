import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Is inside a double barrier; library_test.go says which. */
final class Entry extends Untimed {
    private final CuratorFramework client;
    private final String path;
    private final int size;
    private final boolean meets;
    private DistributedDoubleBarrier barrier;
    private long rounds;

    Entry(CuratorFramework client, String path, boolean meets) {
        this.client = client;
        this.path = path;
        this.size = Integer.parseInt(path.substring(path.lastIndexOf('-') + 1));
        this.meets = meets;
    }

    @Override
    public void acquire() throws Exception {
        barrier = new DistributedDoubleBarrier(client, path + "-" + rounds++ % 2, size);
        barrier.enter();
    }

    @Override
    public void release() throws Exception {
        barrier.leave();
    }

    /** Waits until all have noted in this round that they are inside. */
    void meet(Path inside) throws IOException, InterruptedException {
        if (meets) {
            Files.writeString(inside, ".", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            while (Files.size(inside) < rounds * size) {
                Thread.sleep(1);
            }
        }
    }
}
