import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own locks under the command of a test: one command a line on standard input, one answer a line on standard
 * output. contender.py and contender_test.go understand the same, but for revocation.
 *
 * <pre>
 * clock                               what the machine's clock shows, in nanoseconds
 * make ID RECIPE PATH                 a contender
 * ask ID                              it waits for the lock from now on
 * granted ID MILLISECONDS             held, or waits if that was not long enough
 * leave ID                            left: it waits no more
 * downgrade ID                        reads: who held the lock as a writer holds it as a reader
 * release ID
 * asked ID MILLISECONDS               asked, if somebody asked the holder to let go; else undisturbed
 * revoke NODE                         asks the holder that the node belongs to
 * gather RECIPE PATH CONTENDERS       more contenders, with sessions of their own
 * contend ROUNDS FOLDER               each of them holds the lock so often, and on while FOLDER/going exists, and counts
 * </pre>
 */
public final class Contender {
    private final String servers;
    private final int timeout;
    private final String credentials;
    private final CuratorFramework shared;
    private final Map<String, Asking> asking = new HashMap<>();
    private final List<Worker> gathered = new ArrayList<>();

    private Contender(String servers, int timeout, String credentials) throws InterruptedException {
        this.servers = servers;
        this.timeout = timeout;
        this.credentials = credentials;
        this.shared = connect();
    }

    /** What one contender is about. A lock of Curator belongs to the thread that has acquired it. */
    private static final class Asking {
        private InterProcessLock lock;
        private final Revocation revocation = new Revocation();
        private final ExecutorService thread = Executors.newSingleThreadExecutor(Asking::daemon);
        private Future<?> granted;
        private InterProcessReadWriteLock both; // of a writer that becomes a reader

        private Asking(InterProcessLock lock) {
            this.lock = lock;
        }

        private Void downgrade() throws Exception {
            InterProcessLock reader = both.readLock();
            reader.acquire();
            lock.release();
            lock = reader;
            return null;
        }

        /** A thread that does not keep the program when it has been told nothing more. */
        private static Thread daemon(Runnable work) {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String credentials = arguments.length > 2 ? arguments[2] : null;
        Contender contender = new Contender(arguments[0], Integer.parseInt(arguments[1]), credentials);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(contender.answer(line.split(" ")));
        }
        contender.shared.close();
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "clock":
                    return Long.toString(System.nanoTime());
                case "make":
                    make(words[1], words[2], words[3]);
                    return "made";
                case "revoke":
                    Revoker.attemptRevoke(shared, words[1]);
                    return "revoked";
                case "gather":
                    for (int i = Integer.parseInt(words[3]); i > 0; i--) {
                        CuratorFramework client = connect();
                        gathered.add(new Worker(client, lock(client, words[1], words[2]), overlaps(words[1])));
                    }
                    return "gathered";
                case "contend":
                    contend(Integer.parseInt(words[1]), Path.of(words[2]));
                    return "counted";
                default:
                    return answer(words, asking.get(words[1]));
            }
        } catch (ExecutionException failure) {
            return "failed: " + failure.getCause();
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private static String answer(String[] words, Asking contender) throws Exception {
        switch (words[0]) {
            case "ask":
                contender.granted = contender.thread.submit(() -> {
                    contender.lock.acquire();
                    return null;
                });
                return "asked";
            case "granted":
                try {
                    contender.granted.get(Long.parseLong(words[2]), TimeUnit.MILLISECONDS);
                    return "held";
                } catch (TimeoutException waits) {
                    return "waits";
                }
            case "leave":
                contender.granted.cancel(true);
                contender.thread.submit(() -> {}).get();
                return "left";
            case "downgrade":
                contender.thread.submit(contender::downgrade).get();
                return "reads";
            case "release":
                contender.thread.submit(() -> {
                    contender.lock.release();
                    return null;
                }).get();
                return "released";
            case "asked":
                return contender.revocation.await(Long.parseLong(words[2])) ? "asked" : "undisturbed";
            default:
                return "what is " + words[0] + "?";
        }
    }

    private void make(String id, String recipe, String path) throws Exception {
        Asking made;
        if (recipe.equals("revocable")) {
            InterProcessMutex lock = new InterProcessMutex(shared, path);
            made = new Asking(lock);
            lock.makeRevocable(made.revocation);
        } else if (recipe.equals("downgradable")) {
            InterProcessReadWriteLock both = new InterProcessReadWriteLock(shared, path);
            made = new Asking(both.writeLock());
            made.both = both;
        } else {
            made = new Asking(lock(shared, recipe, path));
        }
        asking.put(id, made);
    }

    private CuratorFramework connect() throws InterruptedException {
        CuratorFrameworkFactory.Builder builder = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(timeout)
                .connectionTimeoutMs(timeout)
                .retryPolicy(new ExponentialBackoffRetry(100, 5));
        if (credentials != null) {
            builder.authorization("digest", credentials.getBytes(StandardCharsets.UTF_8));
        }
        CuratorFramework client = builder.build();
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** Whether several hold at a time. */
    private static boolean overlaps(String recipe) {
        return List.of("read", "permits", "entry", "meeting").contains(recipe);
    }

    private static InterProcessLock lock(CuratorFramework client, String recipe, String path) throws Exception {
        switch (recipe) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "write":
                return new InterProcessReadWriteLock(client, path).writeLock();
            case "read":
                return new InterProcessReadWriteLock(client, path).readLock();
            case "permits":
                return new Permits(client, path);
            case "semaphore":
                return new InterProcessSemaphoreMutex(client, path);
            case "selector":
                return new Selected(client, path);
            case "latch":
                return new Latched(client, path);
            case "entry":
            case "meeting":
                return new Entry(client, path, recipe.equals("meeting"));
            default:
                return Class.forName(recipe).asSubclass(InterProcessLock.class)
                        .getConstructor(CuratorFramework.class, String.class).newInstance(client, path);
        }
    }

    /** Has all that were gathered hold the lock so often, and lets them go. */
    private void contend(int rounds, Path folder) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(gathered.size());
        List<Future<?>> done = new ArrayList<>();
        for (Worker worker : gathered) {
            String name = System.getProperty("library", "curator") + "-" + ProcessHandle.current().pid() + "-" + done.size();
            done.add(threads.submit(() -> {
                worker.work(folder, name, rounds);
                return null;
            }));
        }
        gathered.clear();
        try {
            for (Future<?> each : done) {
                each.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }
}
