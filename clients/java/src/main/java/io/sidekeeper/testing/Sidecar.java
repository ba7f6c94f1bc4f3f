package io.sidekeeper.testing;

import io.sidekeeper.Client;
import io.sidekeeper.dev.v1.DelayGrantsRequest;
import io.sidekeeper.dev.v1.ExpireLeaseRequest;
import io.sidekeeper.dev.v1.SuspendRequest;
import io.sidekeeper.errors.SidekeeperException;
import java.io.BufferedReader;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A running sidecar on a Unix socket: {@code sidekeeper dev}, the program that runs in production,
 * with an ensemble of its own in memory. It starts within a fraction of a second, and fails as
 * sidecars and ensembles do in production when a test asks for it.
 *
 * <p>The program is what the environment variable {@code SIDEKEEPER_PROGRAM} names, or {@code
 * sidekeeper} on the path. It ends with the tests, even if they are killed.
 */
public final class Sidecar implements AutoCloseable {
  /** The environment variable that names the program. */
  public static final String PROGRAM_VARIABLE = "SIDEKEEPER_PROGRAM";

  private static final String SOCKET = "unix://";

  /** Seconds that the program may take to end. */
  private static final long PATIENCE = 30;

  private static final Pattern CALLERS = Pattern.compile("callers: +unix://([^\\s,]+)");

  private final Process process;
  private final String socket;
  private final Faults faults;
  private @Nullable Client client;

  /**
   * Starts a sidecar, and returns when it serves. Leases survive without the ensemble for 6 seconds
   * unless their callers ask for another time: one is suspended about a second after the ensemble
   * has fallen silent, and lost after about four.
   *
   * @throws IllegalStateException if there is no program, or if it does not start and has written
   *     the reason to standard error
   */
  public Sidecar() {
    this(Duration.ofSeconds(6));
  }

  /**
   * Starts a sidecar, and returns when it serves.
   *
   * @param sessionTimeout how long leases survive without the ensemble unless their callers ask for
   *     another time: from 2.2 to 20 seconds
   * @throws IllegalStateException if there is no program, or if it does not start and has written
   *     the reason to standard error
   */
  public Sidecar(Duration sessionTimeout) {
    this(program(), sessionTimeout);
  }

  Sidecar(String program, Duration sessionTimeout) {
    // It ends when its input does, which nothing is written to: with this process, in any case.
    List<String> command = new ArrayList<>(List.of(program, "dev", "--until-input-ends"));
    command.addAll(List.of("--listen=", "--drain-timeout=0s", "--log-level=error"));
    command.add("--session-timeout=" + sessionTimeout.toMillis() + "ms");
    process = start(program, new ProcessBuilder(command));
    socket = awaitSocket(program, process.inputReader());
    faults = new Faults(socket);
  }

  private static String program() {
    String named = System.getenv(PROGRAM_VARIABLE);
    return named == null || named.isEmpty() ? "sidekeeper" : named;
  }

  private static Process start(String program, ProcessBuilder builder) {
    try {
      return builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException failed) {
      throw new IllegalStateException(
          "no program \""
              + program
              + "\" to start a sidecar with: put sidekeeper on the path, or its path into "
              + PROGRAM_VARIABLE
              + ". It is one file, from https://github.com/sidekeeper/sidekeeper/releases",
          failed);
    }
  }

  private static String awaitSocket(String program, BufferedReader said) {
    try {
      for (String line = said.readLine(); line != null; line = said.readLine()) {
        Matcher callers = CALLERS.matcher(line);
        if (callers.find()) {
          return callers.group(1); // what else it says fits into the pipe
        }
      }
      throw new IllegalStateException(program + " dev does not start");
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /**
   * Returns where it listens.
   *
   * @return {@code unix:///…}, as clients understand it
   */
  public String address() {
    return SOCKET + socket;
  }

  /**
   * Returns a client of the sidecar. It is made when it is first asked for, and closed with the
   * sidecar.
   *
   * @return the same one each time
   */
  public synchronized Client client() {
    Client made = client == null ? new Client(address()) : client;
    client = made;
    return made;
  }

  /**
   * Closes the client and stops the sidecar. Locks that others hold are lost. Closing again does
   * nothing.
   */
  @Override
  public synchronized void close() {
    if (client != null) {
      client.close();
    }
    faults.close();
    try {
      process.getOutputStream().close();
      if (!process.waitFor(PATIENCE, TimeUnit.SECONDS)) {
        throw new IllegalStateException("the sidecar does not end");
      }
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      process.destroyForcibly();
    }
  }

  /**
   * Keeps the ensemble from answering for that long, as if the network to it had been cut. What is
   * held is suspended, and lost if the silence outlasts its validity.
   *
   * @param duration how long; the newest call counts, and zero ends a silence at once
   * @throws SidekeeperException if the sidecar refuses it
   */
  public void suspend(Duration duration) {
    SuspendRequest request = SuspendRequest.newBuilder().setDuration(wire(duration)).build();
    faults.ask(dev -> dev.suspend(request));
  }

  /**
   * Has each lock granted that much later than its turn comes, from now on. Meanwhile its caller
   * waits at the head of the queue.
   *
   * @param delay how much; zero ends it
   * @throws SidekeeperException if the sidecar refuses it
   */
  public void delayGrants(Duration delay) {
    DelayGrantsRequest request = DelayGrantsRequest.newBuilder().setDelay(wire(delay)).build();
    faults.ask(dev -> dev.delayGrants(request));
  }

  /**
   * Expires the leases that hold a lock, as the ensemble does with those that it has not heard of
   * for too long. It returns when their callers have been told and the lock is free.
   *
   * @param name of the lock
   * @throws SidekeeperException if the lock has no holder
   */
  public void expireLock(String name) {
    expire(ExpireLeaseRequest.newBuilder().setLock(name));
  }

  /**
   * Expires a lease, as {@link #expireLock} does.
   *
   * @param id of the lease
   * @throws SidekeeperException if there is none
   */
  public void expireLease(String id) {
    expire(ExpireLeaseRequest.newBuilder().setLeaseId(id));
  }

  /**
   * Expires every lease of the sidecar, as {@link #expireLock} does.
   *
   * @return how many there were
   */
  public int expireAll() {
    return expire(ExpireLeaseRequest.newBuilder().setAll(true));
  }

  private int expire(ExpireLeaseRequest.Builder leases) {
    return faults.ask(dev -> dev.expireLease(leases.build())).getExpired();
  }

  private static com.google.protobuf.Duration wire(Duration duration) {
    return com.google.protobuf.Duration.newBuilder()
        .setSeconds(duration.getSeconds())
        .setNanos(duration.getNano())
        .build();
  }
}
