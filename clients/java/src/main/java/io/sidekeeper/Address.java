package io.sidekeeper;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Where a sidecar is.
 *
 * @param path of its Unix socket; null if it is reached over TCP
 * @param host to reach it over TCP
 * @param port to reach it over TCP
 */
record Address(@Nullable String path, String host, int port) {
  private static final Pattern HOST_AND_PORT = Pattern.compile("([^/]+):(\\d{1,5})");
  private static final Pattern LOOPBACK = Pattern.compile("localhost|::1|127\\.\\d+\\.\\d+\\.\\d+");

  /** Reads an address. Throws IllegalArgumentException for what is none. */
  static Address parse(String text) {
    if (text.startsWith("/")) {
      return new Address(text, "localhost", 0);
    }
    if (text.startsWith("unix:")) {
      String path = text.substring("unix:".length());
      return new Address(path.startsWith("//") ? path.substring(2) : path, "localhost", 0);
    }
    Matcher parts = HOST_AND_PORT.matcher(text);
    if (!parts.matches() || Integer.parseInt(parts.group(2)) > 65_535) {
      throw new IllegalArgumentException(
          "sidecar address \"" + text + "\" is neither unix:///path, a path nor host:port");
    }
    String host = parts.group(1).replaceAll("^\\[|]$", "");
    return new Address(null, host, Integer.parseInt(parts.group(2)));
  }

  /** Says whether it stays on this machine. */
  boolean isLocal() {
    return path != null || LOOPBACK.matcher(host).matches();
  }
}
