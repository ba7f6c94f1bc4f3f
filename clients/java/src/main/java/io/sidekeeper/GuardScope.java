package io.sidekeeper;

import io.sidekeeper.hold.v1.Guard;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Where what a thread writes is guarded by a hold: until it is closed, on the same thread. Scopes
 * may lie inside one another; what is written in several is guarded by each of their holds, at most
 * 8.
 */
public final class GuardScope implements AutoCloseable {
  private static final ThreadLocal<List<GuardScope>> OPEN = ThreadLocal.withInitial(List::of);

  private final @Nullable Core client;
  private final @Nullable Guard guard;
  private final List<Ticket> tickets;

  private GuardScope(@Nullable Core client, @Nullable Guard guard, List<Ticket> tickets) {
    this.client = client;
    this.guard = guard;
    this.tickets = tickets;
  }

  /**
   * Opens one for what a client writes, or null for all; without a guard none applies in it. The
   * tickets are those of the hold that exclude all others.
   */
  static GuardScope open(@Nullable Core client, @Nullable Guard guard, List<Ticket> tickets) {
    GuardScope scope = new GuardScope(client, guard, tickets);
    List<GuardScope> open = new ArrayList<>(OPEN.get());
    open.add(scope);
    OPEN.set(List.copyOf(open));
    return scope;
  }

  /**
   * Has this thread write without guards, although a lock is held, until the scope is closed.
   *
   * @return the scope; close it on this thread
   */
  public static GuardScope unguarded() {
    return open(null, null, List.of());
  }

  /** The guards of what the client writes on this thread. */
  static List<Guard> guards(Core client) {
    List<Guard> guards = new ArrayList<>();
    for (GuardScope scope : OPEN.get()) {
      if (scope.guard == null) {
        guards.clear();
      } else if (scope.client == null || scope.client == client) {
        guards.add(scope.guard);
      }
    }
    return guards;
  }

  /**
   * The tickets of the holds that guard what this thread writes, outermost first: what the package
   * {@code io.sidekeeper.fence} sends along to whatever else the locks protect. Locks that are held
   * with {@link Mode#READ} have none here, since readers do not exclude each other.
   *
   * @return each of them once
   */
  public static List<Ticket> tickets() {
    Set<Ticket> tickets = new LinkedHashSet<>();
    for (GuardScope scope : OPEN.get()) {
      if (scope.guard == null) {
        tickets.clear();
      } else {
        tickets.addAll(scope.tickets);
      }
    }
    return List.copyOf(tickets);
  }

  /** Ends it. Again, or on another thread, it does nothing. */
  @Override
  public void close() {
    List<GuardScope> open = new ArrayList<>(OPEN.get());
    open.removeIf(scope -> scope == this);
    if (open.isEmpty()) {
      OPEN.remove();
    } else {
      OPEN.set(List.copyOf(open));
    }
  }
}
