import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own elections under the command of a test: one command a line on standard input, one answer a line on standard
 * output.
 *
 * <pre>
 * stand PATH ID             stands: it wants to lead, by the recipe of LeaderSelector
 * leader                    who leads, as the leader says of itself
 * leads MILLISECONDS        leads, or waits if that was not long enough
 * resign                    resigned
 * latch PATH MILLISECONDS   leads or waits, by the recipe of LeaderLatch; it is closed again
 * enter PATH ID             entered: it wants to lead, by the recipe of LeaderLatch
 * latched MILLISECONDS      leads, or waits if that was not long enough
 * latch-leader              who leads, as the leader says of itself
 * leave                     left
 * </pre>
 */
public final class Elector extends LeaderSelectorListenerAdapter {
    private final CuratorFramework client;
    private final CountDownLatch leads = new CountDownLatch(1);
    private final CountDownLatch resigned = new CountDownLatch(1);
    private LeaderSelector selector;
    private LeaderLatch latch;

    private Elector(String servers) throws InterruptedException {
        client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] arguments) throws Exception {
        Elector elector = new Elector(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(elector.answer(line.split(" ")));
        }
        elector.client.close();
    }

    @Override
    public void takeLeadership(CuratorFramework client) throws Exception {
        leads.countDown();
        resigned.await();
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "stand":
                    stand(words[1], words[2]);
                    return "stands";
                case "leader":
                    return selector.getLeader().getId();
                case "leads":
                    return leads.await(Long.parseLong(words[1]), TimeUnit.MILLISECONDS) ? "leads" : "waits";
                case "resign":
                    resigned.countDown();
                    return "resigned";
                case "latch":
                    return latch(words[1], Long.parseLong(words[2])) ? "leads" : "waits";
                case "enter":
                    enter(words[1], words[2]);
                    return "entered";
                case "latched":
                    return latch.await(Long.parseLong(words[1]), TimeUnit.MILLISECONDS) ? "leads" : "waits";
                case "latch-leader":
                    return latch.getLeader().getId();
                case "leave":
                    latch.close();
                    return "left";
                default:
                    return "what is " + words[0] + "?";
            }
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private void stand(String path, String id) {
        selector = new LeaderSelector(client, path, this);
        selector.setId(id);
        selector.start();
    }

    private void enter(String path, String id) throws Exception {
        latch = new LeaderLatch(client, path, id);
        latch.start();
    }

    private boolean latch(String path, long milliseconds) throws Exception {
        try (LeaderLatch latch = new LeaderLatch(client, path)) {
            latch.start();
            return latch.await(milliseconds, TimeUnit.MILLISECONDS);
        }
    }
}
