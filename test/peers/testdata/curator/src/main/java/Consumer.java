import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own queues under the command of a test: one command a line on standard input, one answer a line on standard
 * output.
 *
 * <pre>
 * open KIND PATH      opened: a queue that is plain, prioritized, delayed, or plain without a lock path (unlocked); the one before
 *                     is closed. It takes no items
 * consume KIND PATH   opened: it takes items; with a FOLDER it works on each for a moment and notes when, as Worker does
 * put ITEM ORDER      put: with a priority, or milliseconds of delay, or neither if the queue is plain
 * taken               the items that were taken, in that order; one that is called endless is never done
 * </pre>
 */
public final class Consumer implements QueueConsumer<String>, QueueSerializer<String> {
    private final CuratorFramework client;
    private QueueBase<String> queue;
    private final List<String> taken = new CopyOnWriteArrayList<>();
    private PrintStream record; // null if nothing is noted

    private Consumer(String servers, int timeout) throws InterruptedException {
        client = CuratorFrameworkFactory.newClient(servers, timeout, timeout, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] arguments) throws Exception {
        Consumer consumer = new Consumer(arguments[0], Integer.parseInt(arguments[1]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(consumer.answer(line.split(" ")));
        }
        consumer.close();
        consumer.client.close();
    }

    @Override
    public void consumeMessage(String item) throws InterruptedException {
        if (record != null) {
            note(item);
            return;
        }
        taken.add(item);
        if (item.equals("endless")) {
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    private void note(String item) throws InterruptedException {
        record.print(item + " " + System.nanoTime() + " " + System.nanoTime());
        record.flush();
        Thread.sleep(1);
        record.print(" " + System.nanoTime() + "\n");
        record.flush();
    }

    @Override
    public void stateChanged(CuratorFramework client, ConnectionState state) {}

    @Override
    public byte[] serialize(String item) {
        return item.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String deserialize(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "open":
                    open(words[1], words[2], null);
                    return "opened";
                case "consume":
                    if (words.length > 3) {
                        record = new PrintStream(words[3] + "/curator-" + ProcessHandle.current().pid() + "-0.record");
                    }
                    open(words[1], words[2], this);
                    return "opened";
                case "put":
                    put(words[1], Integer.parseInt(words[2]));
                    return "put";
                case "taken":
                    return taken();
                default:
                    return "what is " + words[0] + "?";
            }
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private String taken() {
        return String.join(" ", taken);
    }

    private void open(String kind, String path, QueueConsumer<String> consumer) throws Exception {
        close();
        QueueBuilder<String> builder = QueueBuilder.builder(client, consumer, this, path);
        builder.putInBackground(false);
        if (!kind.equals("unlocked")) {
            builder.lockPath(path + ".taken");
        }
        switch (kind) {
            case "prioritized":
                queue = builder.buildPriorityQueue(0);
                break;
            case "delayed":
                queue = builder.buildDelayQueue();
                break;
            default:
                queue = builder.buildQueue();
        }
        queue.start();
    }

    private void put(String item, int order) throws Exception {
        if (queue instanceof DistributedPriorityQueue) {
            ((DistributedPriorityQueue<String>) queue).put(item, order);
        } else if (queue instanceof DistributedDelayQueue) {
            ((DistributedDelayQueue<String>) queue).put(item, System.currentTimeMillis() + order);
        } else {
            ((DistributedQueue<String>) queue).put(item);
        }
    }

    private void close() throws IOException {
        if (queue != null) {
            queue.close();
        }
        taken.clear();
    }
}
