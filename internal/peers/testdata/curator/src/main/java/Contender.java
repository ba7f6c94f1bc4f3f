import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own locks under the command of a test: one command a line on standard input, one answer a line on standard
 * output. contender.py understands the same.
 *
 * <pre>
 * make ID RECIPE PATH                            a contender with a session of its own
 * acquire ID MILLISECONDS                        held, or waits if that was not long enough
 * release ID
 * gather RECIPE PATH CONTENDERS                  contenders with sessions of their own, connected
 * contend ROUNDS FOLDER                          each of them holds the lock so often, and meanwhile counts
 * </pre>
 */
public final class Contender {
    private final String servers;
    private final Map<String, InterProcessLock> locks = new HashMap<>();
    private final List<InterProcessLock> gathered = new ArrayList<>();
    private final List<CuratorFramework> clients = new ArrayList<>();
    // A lock of Curator belongs to the thread that has acquired it.
    private final ExecutorService commands = Executors.newSingleThreadExecutor();

    private Contender(String servers) {
        this.servers = servers;
    }

    public static void main(String[] arguments) throws Exception {
        Contender contender = new Contender(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(contender.commands.submit(() -> contender.answer(words)).get());
        }
        contender.clients.forEach(CuratorFramework::close);
        contender.commands.shutdown();
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "make":
                    locks.put(words[1], lock(words[2], words[3]));
                    return "made";
                case "acquire":
                    boolean held = locks.get(words[1]).acquire(Long.parseLong(words[2]), TimeUnit.MILLISECONDS);
                    return held ? "held" : "waits";
                case "release":
                    locks.get(words[1]).release();
                    return "released";
                case "gather":
                    gather(words[1], words[2], Integer.parseInt(words[3]));
                    return "gathered";
                case "contend":
                    contend(Integer.parseInt(words[1]), Path.of(words[2]));
                    return "counted";
                default:
                    return "what is " + words[0] + "?";
            }
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private CuratorFramework client() throws InterruptedException {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
        clients.add(client);
        return client;
    }

    private InterProcessLock lock(String recipe, String path) throws InterruptedException {
        switch (recipe) {
            case "mutex":
                return new InterProcessMutex(client(), path);
            case "write":
                return new InterProcessReadWriteLock(client(), path).writeLock();
            case "read":
                return new InterProcessReadWriteLock(client(), path).readLock();
            default:
                throw new IllegalArgumentException(recipe);
        }
    }

    private void gather(String recipe, String path, int contenders) throws InterruptedException {
        gathered.clear();
        for (int i = 0; i < contenders; i++) {
            gathered.add(lock(recipe, path));
        }
    }

    private void contend(int rounds, Path folder) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(gathered.size());
        List<Future<?>> done = new ArrayList<>();
        for (InterProcessLock lock : gathered) {
            done.add(threads.submit(() -> {
                for (int round = 0; round < rounds; round++) {
                    lock.acquire();
                    try {
                        count(folder);
                    } finally {
                        lock.release();
                    }
                }
                return null;
            }));
        }
        try {
            for (Future<?> each : done) {
                each.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** Counts one more. Who is not alone finds the other's marker, or makes a count be lost. */
    private static void count(Path folder) throws IOException, InterruptedException {
        Path marker = folder.resolve("marker");
        Path counter = folder.resolve("counter");
        Files.createFile(marker);
        int before = Integer.parseInt(Files.readString(counter));
        Thread.sleep(1);
        Files.writeString(counter, Integer.toString(before + 1));
        Files.delete(marker);
    }
}
