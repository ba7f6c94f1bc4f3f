import java.util.concurrent.Semaphore;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListener;
import org.apache.curator.framework.state.ConnectionState;

/** Leads by the recipe of LeaderSelector. */
final class Selected extends Untimed implements LeaderSelectorListener {
    private final LeaderSelector selector;
    private final Semaphore leads = new Semaphore(0);
    private final Semaphore resigns = new Semaphore(0);
    private boolean started;

    Selected(CuratorFramework client, String path) {
        selector = new LeaderSelector(client, path, this);
    }

    @Override
    public void acquire() throws InterruptedException {
        if (!started) {
            selector.start();
            started = true;
        } else {
            while (!selector.requeue()) { // it has not ended its term
                Thread.sleep(1);
            }
        }
        leads.acquire();
    }

    @Override
    public void release() {
        resigns.release();
    }

    @Override
    public void takeLeadership(CuratorFramework client) throws InterruptedException {
        leads.release();
        resigns.acquire();
    }

    @Override
    public void stateChanged(CuratorFramework client, ConnectionState state) {}
}
