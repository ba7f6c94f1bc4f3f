import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own barriers under the command of a test: one command a line on standard input, one answer a line on standard
 * output. gate.py understands the same.
 *
 * <pre>
 * set PATH            set: the barrier
 * remove PATH         removed
 * wait PATH           asked: it waits at the barrier
 * enter PATH SIZE     asked: it enters the double barrier with so many
 * leave               asked: it leaves the double barrier
 * done MILLISECONDS   done is what it was asked, or it waits if that was not long enough
 * </pre>
 */
public final class Gate {
    private final CuratorFramework client;
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private DistributedDoubleBarrier entry;
    private Future<Object> asked;

    private Gate(String servers) throws InterruptedException {
        client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] arguments) throws Exception {
        Gate gate = new Gate(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(gate.answer(line.split(" ")));
        }
        gate.thread.shutdownNow();
        gate.client.close();
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "set":
                    barrier(words[1]).setBarrier();
                    return "set";
                case "remove":
                    barrier(words[1]).removeBarrier();
                    return "removed";
                case "wait":
                    return ask(() -> {
                        barrier(words[1]).waitOnBarrier();
                        return null;
                    });
                case "enter":
                    return enter(words[1], Integer.parseInt(words[2]));
                case "leave":
                    return ask(() -> {
                        entry.leave();
                        return null;
                    });
                case "done":
                    return done(Long.parseLong(words[1]));
                default:
                    return "what is " + words[0] + "?";
            }
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private DistributedBarrier barrier(String path) {
        return new DistributedBarrier(client, path);
    }

    private String enter(String path, int size) {
        entry = new DistributedDoubleBarrier(client, path, size);
        return ask(() -> {
            entry.enter();
            return null;
        });
    }

    private String ask(Callable<Object> what) {
        asked = thread.submit(what);
        return "asked";
    }

    private String done(long milliseconds) throws Exception {
        try {
            asked.get(milliseconds, TimeUnit.MILLISECONDS);
            return "done";
        } catch (TimeoutException early) {
            return "waits";
        }
    }
}
