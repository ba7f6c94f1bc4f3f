import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessLock;

/** What is held as if it were a lock, and waited for without a limit. */
abstract class Untimed implements InterProcessLock {
    @Override
    public boolean acquire(long time, TimeUnit unit) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean isAcquiredInThisProcess() {
        throw new UnsupportedOperationException();
    }
}
