import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;

/** A contender that works while it holds the lock; work_test.go does the same, and says what it writes. */
final class Worker {
    private final CuratorFramework client;
    private final InterProcessLock lock;
    private final boolean reads;

    Worker(CuratorFramework client, InterProcessLock lock, boolean reads) {
        this.client = client;
        this.lock = lock;
        this.reads = reads;
    }

    void work(Path folder, String name, int rounds) throws Exception {
        try (client; PrintStream record = new PrintStream(folder.resolve(name + ".record").toFile())) {
            for (int round = 0; round < rounds || Files.exists(folder.resolve("going")); round++) {
                long asked = System.nanoTime();
                lock.acquire();
                record.print((reads ? "read " : "write ") + asked + " " + System.nanoTime());
                record.flush();
                if (lock instanceof Entry) {
                    ((Entry) lock).meet(folder.resolve("inside"));
                }
                count(folder.resolve("counter"));
                record.print(" " + System.nanoTime() + "\n");
                record.flush();
                lock.release();
            }
        }
    }

    private void count(Path counter) throws IOException, InterruptedException {
        int before = counted(counter);
        Thread.sleep(lock instanceof Permits ? 20 : 1); // so long that permits are held together
        if (!reads) {
            Files.writeString(counter, String.format("%012d", before + 1), StandardOpenOption.WRITE);
        } else if (counted(counter) != before) {
            throw new IOException(before + " became " + counted(counter) + " while it was read");
        }
    }

    private static int counted(Path counter) throws IOException {
        return Integer.parseInt(Files.readString(counter));
    }
}
