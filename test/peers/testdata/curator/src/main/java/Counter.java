import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own counter under the command of a test: one command a line on standard input, one answer a line on
 * standard output. counter.py understands the same.
 *
 * <pre>
 * take PATH COUNT     counts so often, one at a time: the numbers that it has come to
 * set PATH VALUE      set
 * </pre>
 */
public final class Counter {
    private final CuratorFramework client;

    private Counter(String servers) throws InterruptedException {
        client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] arguments) throws Exception {
        Counter counter = new Counter(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(counter.answer(line.split(" ")));
        }
        counter.client.close();
    }

    private String answer(String[] words) {
        try {
            DistributedAtomicLong counter =
                    new DistributedAtomicLong(client, words[1], new ExponentialBackoffRetry(1, 10));
            switch (words[0]) {
                case "take":
                    return take(counter, Integer.parseInt(words[2]));
                case "set":
                    counter.forceSet(Long.parseLong(words[2]));
                    return "set";
                default:
                    return "what is " + words[0] + "?";
            }
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private static String take(DistributedAtomicLong counter, int count) throws Exception {
        StringBuilder taken = new StringBuilder();
        for (int left = count; left > 0; ) {
            AtomicValue<Long> value = counter.increment();
            if (value.succeeded()) {
                taken.append(taken.length() == 0 ? "" : " ").append(value.postValue());
                left--;
            }
        }
        return taken.toString();
    }
}
