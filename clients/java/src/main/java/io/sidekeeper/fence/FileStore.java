package io.sidekeeper.fence;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import io.sidekeeper.Ticket;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Keeps marks in a file, which all processes of one machine can share: each raise has a lock on the
 * file of that name with {@code .lock} behind it, and replaces the file as a whole, when it is safe
 * on the disk. It is for disks of the machine, not of a network, and takes a system on which a
 * folder can be synchronized, as Linux and macOS can. Do not delete the file: without it late calls
 * pass.
 */
public final class FileStore implements Store {
  /** A lock on a file is the process's: within it, one at a time asks for one. */
  private static final Object ALONE = new Object();

  private final Path file;

  /**
   * Makes one.
   *
   * @param file with the marks
   */
  public FileStore(Path file) {
    this.file = file.toAbsolutePath();
  }

  @Override
  @SuppressWarnings("try") // the lock has no other use than its end
  public long raise(String lock, long token) throws IOException {
    synchronized (ALONE) {
      try (FileChannel other = FileChannel.open(beside(".lock"), CREATE, WRITE);
          var held = other.lock()) {
        Map<String, Long> marks = read();
        long mark = marks.getOrDefault(lock, 0L);
        if (mark >= token) {
          return mark;
        }
        marks.put(lock, token);
        replace(marks);
        return token;
      }
    }
  }

  private Path beside(String ending) {
    return file.resolveSibling(file.getFileName() + ending);
  }

  private Map<String, Long> read() throws IOException {
    Map<String, Long> marks = new LinkedHashMap<>();
    if (Files.exists(file)) {
      for (String line : Files.readAllLines(file)) {
        Ticket mark = mark(line);
        marks.put(mark.lock(), mark.fencingToken());
      }
    }
    return marks;
  }

  private Ticket mark(String line) throws IOException {
    try {
      return FenceHeader.parseTicket(line);
    } catch (RefusedException malformed) {
      throw new IOException("marks: " + file + " has a line that is not lock=token", malformed);
    }
  }

  private void replace(Map<String, Long> marks) throws IOException {
    StringBuilder text = new StringBuilder();
    marks.forEach((lock, token) -> text.append(lock).append('=').append(token).append('\n'));
    Path fresh = beside(".new");
    try (FileChannel channel = FileChannel.open(fresh, CREATE, WRITE, TRUNCATE_EXISTING)) {
      ByteBuffer bytes = UTF_8.encode(text.toString());
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      channel.force(true);
    }
    Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
    try (FileChannel folder = FileChannel.open(file.resolveSibling("."), READ)) {
      folder.force(true);
    }
  }
}
