package io.sidekeeper.fence;

import io.sidekeeper.GuardScope;
import io.sidekeeper.Ticket;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The header that has the tickets of a call: {@code orders=61, stock/eu=7}. */
public final class FenceHeader {
  /** The header's name, in gRPC's metadata and in HTTP. */
  public static final String NAME = "sidekeeper-fence";

  /** As many as a write has guards. */
  private static final int MOST_TICKETS = 16;

  private static final Pattern TICKET =
      Pattern.compile("([A-Za-z0-9._/-]{1,200})=([1-9][0-9]{0,18})");
  private static final Pattern BLANKS = Pattern.compile("^[ \t]+|[ \t]+$");

  private FenceHeader() {}

  /**
   * Writes the tickets of the locks that are held around what this thread does; see {@link
   * GuardScope#tickets}. It is for requests in HTTP.
   *
   * @return the header's value; empty if none is held
   */
  public static String held() {
    return render(GuardScope.tickets());
  }

  /**
   * Writes tickets.
   *
   * @param tickets what to write
   * @return the header's value
   */
  public static String render(List<Ticket> tickets) {
    return tickets.stream()
        .map(ticket -> ticket.lock() + "=" + ticket.fencingToken())
        .collect(Collectors.joining(", "));
  }

  /**
   * Reads the tickets of all headers of a call.
   *
   * @param values of the headers
   * @return each ticket once
   * @throws RefusedException if they break the grammar
   */
  public static List<Ticket> parse(Iterable<String> values) {
    Map<String, Ticket> read = new LinkedHashMap<>();
    for (String value : values) {
      for (String element : value.split(",", -1)) {
        String trimmed = BLANKS.matcher(element).replaceAll("");
        if (!trimmed.isEmpty()) {
          add(read, parseTicket(trimmed));
        }
      }
    }
    return List.copyOf(read.values());
  }

  private static void add(Map<String, Ticket> read, Ticket ticket) {
    Ticket before = read.putIfAbsent(ticket.lock(), ticket);
    if (before != null && !before.equals(ticket)) {
      throw RefusedException.malformed("two tokens of lock " + ticket.lock());
    }
    if (read.size() > MOST_TICKETS) {
      throw RefusedException.malformed("more than " + MOST_TICKETS + " tickets");
    }
  }

  static Ticket parseTicket(String element) {
    Matcher parts = TICKET.matcher(element);
    try {
      if (parts.matches()) {
        return new Ticket(parts.group(1), Long.parseLong(parts.group(2)));
      }
    } catch (NumberFormatException tooLarge) {
      // as what has another form
    }
    throw RefusedException.malformed("not lock=token");
  }
}
