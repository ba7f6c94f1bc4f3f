package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import org.jspecify.annotations.Nullable;

/** Leads again and again, until the body has ended without a loss. */
final class Leading<T, E extends Exception> {
  private final Client client;
  private final String name;
  private final LockOptions options;
  private final Body<T, E> body;
  private final Pause pause = new Pause();
  private @Nullable Lock lead;

  Leading(Client client, String name, LockOptions options, Body<T, E> body) {
    this.client = client;
    this.name = name;
    this.options = options;
    this.body = body;
  }

  T run() throws E, InterruptedException {
    while (true) {
      lead = null;
      try {
        return client.withLock(name, options, this::once);
      } catch (InterruptedException interrupted) {
        throw interrupted;
      } catch (Exception failed) {
        if (client.isClosed() || !isWorthAnother(failed)) {
          throw failed;
        }
      }
      Thread.sleep(pause.next().toMillis());
    }
  }

  private T once(Lock lock) throws E, InterruptedException {
    lead = lock;
    pause.reset();
    return body.run(lock);
  }

  private boolean isWorthAnother(Exception failed) {
    Lock led = lead;
    if (led != null) {
      return led.error().isPresent();
    }
    return failed instanceof LostException
        || (failed instanceof SidekeeperException known && isWorthAnother(known));
  }

  private boolean isWorthAnother(SidekeeperException failed) {
    Lease lease = options.lease();
    return failed.isTransient()
        || (Calls.wasCutShort(failed)
            && (lease == null || lease.isValid() || !lease.claim.isOver()));
  }
}
