package io.sidekeeper.fence;

import io.sidekeeper.Ticket;
import io.sidekeeper.Verification;
import java.lang.System.Logger;
import java.util.List;

/** Lets those calls pass whose tickets are not stale. */
public final class Gate {
  private static final Logger LOG = System.getLogger("io.sidekeeper");

  private final Store store;
  private final GateOptions options;

  /**
   * Makes one.
   *
   * @param store has the marks
   * @param options which calls pass
   */
  public Gate(Store store, GateOptions options) {
    this.store = store;
    this.options = options;
  }

  /**
   * Lets a call pass, which raises the marks of its tickets. A ticket may become stale right
   * afterwards: a service whose effects come late compares the token there again.
   *
   * @param call which it is, for {@link GateOptions#withoutTicket}
   * @param values of the call's headers named {@link FenceHeader#NAME}
   * @return the tickets
   * @throws RefusedException if it does not pass; its cause is what has failed if it is undecided
   */
  public List<Ticket> admit(String call, Iterable<String> values) {
    List<Ticket> tickets = FenceHeader.parse(values);
    if (!options.withoutTicket().test(call)) {
      demand(tickets);
    }
    try {
      for (Ticket ticket : tickets) {
        verify(ticket); // before any mark is raised: marks are for holders alone
      }
      for (Ticket ticket : tickets) {
        raise(ticket);
      }
    } catch (RefusedException refused) {
      throw refused;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw RefusedException.undecided(interrupted);
    } catch (Exception failed) {
      LOG.log(Logger.Level.WARNING, "a call cannot be fenced: " + call, failed);
      throw RefusedException.undecided(failed);
    }
    return tickets;
  }

  private void demand(List<Ticket> tickets) {
    if (options.locks().isEmpty() && tickets.isEmpty()) {
      throw RefusedException.missing("");
    }
    for (String lock : options.locks()) {
      if (tickets.stream().noneMatch(ticket -> ticket.lock().equals(lock))) {
        throw RefusedException.missing(" of lock " + lock);
      }
    }
  }

  private void verify(Ticket ticket) throws Exception {
    GateOptions.Verifier verify = options.verify();
    if (verify != null) {
      Verification verification = verify.verify(ticket);
      if (!verification.held()) {
        throw RefusedException.notHeld(ticket, verification.currentToken());
      }
    }
  }

  private void raise(Ticket ticket) throws Exception {
    long largest = store.raise(ticket.lock(), ticket.fencingToken());
    if (largest > ticket.fencingToken()) {
      throw RefusedException.stale(ticket, largest);
    }
  }
}
