import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.RevocationListener;

/** What a holder learns when somebody asks it to let go. */
final class Revocation implements RevocationListener<InterProcessMutex> {
    private final CountDownLatch requested = new CountDownLatch(1);

    @Override
    public void revocationRequested(InterProcessMutex lock) {
        requested.countDown();
    }

    boolean await(long milliseconds) throws InterruptedException {
        return requested.await(milliseconds, TimeUnit.MILLISECONDS);
    }
}
