import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** The WriteLock that comes with ZooKeeper, with a session of its own, as if it were one of Curator's locks. */
public final class SharedWriteLock implements InterProcessLock, LockListener {
    private final WriteLock lock;
    private final Semaphore granted = new Semaphore(0);

    public SharedWriteLock(CuratorFramework client, String path) throws Exception {
        String servers = client.getZookeeperClient().getCurrentConnectionString();
        int timeout = client.getZookeeperClient().getZooKeeper().getSessionTimeout();
        lock = new WriteLock(new ZooKeeper(servers, timeout, event -> {}), path, null, this);
    }

    @Override
    public void lockAcquired() {
        granted.release();
    }

    @Override
    public void lockReleased() {
        granted.drainPermits();
    }

    @Override
    public void acquire() throws Exception {
        try {
            do {
                lock.lock(); // again, it looks again: it may have missed that it is its turn
            } while (!granted.tryAcquire(500, TimeUnit.MILLISECONDS));
        } catch (InterruptedException left) {
            lock.unlock();
            throw left;
        }
    }

    @Override
    public boolean acquire(long time, TimeUnit unit) throws Exception {
        lock.lock();
        return granted.tryAcquire(time, unit);
    }

    @Override
    public void release() {
        lock.unlock();
    }

    @Override
    public boolean isAcquiredInThisProcess() {
        return lock.isOwner();
    }
}
