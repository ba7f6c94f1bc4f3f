package io.sidekeeper;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.regex.Pattern;

/**
 * Makes names that Sidekeeper takes of those that are not its own, such as those of a framework's
 * jobs. The clients of all languages give the same names.
 */
public final class Names {
  private static final int LONGEST_NAME = 200;
  private static final int LONGEST_SEGMENT = 64;

  /** How many bytes of a text that is cut its name shows. */
  private static final int READABLE = 37;

  private static final Pattern SEGMENT =
      Pattern.compile("(?!\\.{1,2}\\z)(?!zookeeper\\z)[A-Za-z0-9._-]{1,64}");

  private static final Pattern STRANGE = Pattern.compile("[^A-Za-z0-9._-]");

  private Names() {}

  /**
   * Gives the name that stands for a text: of a lock, an election or anything else that has a name.
   *
   * <p>A text that is a name stays as it is, so that the name of a name is itself. Otherwise each
   * of its segments becomes one as {@link #segmentOf} says, and an empty one {@code _-}. A text
   * whose name would be longer than 200 bytes is cut as a long segment is.
   *
   * <p>Two texts have the same name only if one of them is itself a name with {@code _-} or {@code
   * _.} in it, or if both are cut and 96 bits of their SHA-256 are the same.
   *
   * @param text with / between segments
   * @return 1 to 200 bytes; empty for an empty text, which no sidecar takes
   * @throws IllegalArgumentException if the text is not Unicode
   */
  public static String nameOf(String text) {
    byte[] bytes = encoded(text);
    if (text.isEmpty()) {
      return text;
    }
    String[] segments = text.split("/", -1);
    for (int i = 0; i < segments.length; i++) {
      if (i == 0 || !segments[i].equals("zookeeper")) {
        segments[i] = segments[i].isEmpty() ? "_-" : segmentOf(segments[i]);
      }
    }
    String name = String.join("/", segments);
    return name.length() <= LONGEST_NAME ? name : cut(bytes);
  }

  /**
   * Gives the one segment that stands for a text: the name of a member or an item, or the key of
   * work that is done once.
   *
   * <p>A text that is a segment stays as it is. Otherwise the segment is {@code _-} and the text in
   * UTF-8, in which {@code __} is an underscore and {@code _3a} a byte that no segment has. A text
   * whose segment would be longer than 64 bytes becomes {@code _.}, its first 37 bytes with {@code
   * _} for those that no segment has, {@code -} and the first 24 hexadecimal digits of its SHA-256.
   *
   * @param text of any length
   * @return 1 to 64 bytes; empty for an empty text
   * @throws IllegalArgumentException if the text is not Unicode
   */
  public static String segmentOf(String text) {
    byte[] bytes = encoded(text);
    if (text.isEmpty() || SEGMENT.matcher(text).matches()) {
      return text;
    }
    String doubled = new String(bytes, ISO_8859_1).replace("_", "__");
    String escaped =
        "_-"
            + STRANGE
                .matcher(doubled)
                .replaceAll(found -> String.format("_%02x", (int) found.group().charAt(0)));
    return escaped.length() <= LONGEST_SEGMENT ? escaped : cut(bytes);
  }

  private static String cut(byte[] bytes) {
    String shown = new String(bytes, 0, Math.min(bytes.length, READABLE), ISO_8859_1);
    String hash = HexFormat.of().formatHex(sha256().digest(bytes), 0, 12);
    return "_." + STRANGE.matcher(shown).replaceAll("_") + "-" + hash;
  }

  private static byte[] encoded(String text) {
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] encoded = new byte[bytes.remaining()];
      bytes.get(encoded);
      return encoded;
    } catch (CharacterCodingException cause) {
      throw new IllegalArgumentException(
          "text is " + text + ": Unicode without lone surrogates", cause);
    }
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException("every Java has SHA-256", impossible);
    }
  }
}
