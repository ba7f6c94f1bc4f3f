package io.sidekeeper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A TCP proxy towards a Unix socket that cuts what goes through it, as real ones do. */
final class Proxy implements AutoCloseable {
  private static final int PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".length();
  private static final int HEADER = 9;
  private static final byte HEADERS = 1;
  private static final byte RST_STREAM = 3;
  private static final byte INTERNAL_ERROR = 2;
  private static final byte CANCEL = 8;

  final String address;

  private final UnixDomainSocketAddress sidecar;
  private final ServerSocketChannel server;
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();

  Proxy(String address) throws IOException {
    sidecar = UnixDomainSocketAddress.of(address.substring("unix://".length()));
    server =
        ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    this.address = "127.0.0.1:" + ((InetSocketAddress) server.getLocalAddress()).getPort();
    begin(this::serve);
  }

  private interface Task {
    void run() throws IOException;
  }

  /** Runs until it fails, such as since what it reads is closed. */
  private static void begin(Task task) {
    Thread thread =
        new Thread(
            () -> {
              try {
                task.run();
              } catch (IOException closed) {
                Thread.currentThread().interrupt(); // it ends
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private void serve() throws IOException {
    while (true) {
      connections.add(new Connection(server.accept(), SocketChannel.open(sidecar)));
    }
  }

  void closeConnections() {
    connections.removeIf(
        connection -> {
          connection.close();
          return true;
        });
  }

  void resetStreams() {
    connections.forEach(Connection::reset);
  }

  @Override
  public void close() throws IOException {
    server.close();
    closeConnections();
  }

  /** One connection of a client, and the one to the sidecar that is for it. */
  private static final class Connection {
    private final SocketChannel client;
    private final SocketChannel sidecar;
    private final ByteBuffer unread = ByteBuffer.allocate(1 << 20);
    private int skip = PREFACE;

    /** The HTTP/2 stream that the client has begun last. */
    private volatile int newest;

    Connection(SocketChannel client, SocketChannel sidecar) {
      this.client = client;
      this.sidecar = sidecar;
      begin(() -> pass(client, sidecar));
      begin(() -> pass(sidecar, client));
    }

    private void pass(SocketChannel from, SocketChannel to) throws IOException {
      ByteBuffer some = ByteBuffer.allocate(1 << 16);
      try {
        while (from.read(some.clear()) >= 0) {
          if (from == client) {
            note(some.flip().duplicate());
            write(to, some);
          } else {
            write(to, some.flip());
          }
        }
      } finally {
        close();
      }
    }

    private static void write(SocketChannel to, ByteBuffer all) throws IOException {
      synchronized (to) {
        while (all.hasRemaining()) {
          to.write(all);
        }
      }
    }

    /** Notes which streams the client begins. */
    private void note(ByteBuffer sent) {
      unread.put(sent).flip();
      if (unread.remaining() >= skip) {
        unread.position(skip);
        skip = 0;
        int size = HEADER;
        while (unread.remaining() >= HEADER && unread.remaining() >= (size = size())) {
          if (unread.get(unread.position() + 3) == HEADERS) {
            newest = Math.max(newest, unread.getInt(unread.position() + 5));
          }
          unread.position(unread.position() + size);
        }
      }
      unread.compact();
    }

    /** Of the frame that is read next. */
    private int size() {
      return HEADER + (unread.getInt(unread.position()) >>> 8);
    }

    /** Ends the newest stream without a reason, as a proxy does that gives it up. */
    void reset() {
      try {
        write(client, end(INTERNAL_ERROR));
        write(sidecar, end(CANCEL));
      } catch (IOException closed) {
        throw new UncheckedIOException(closed);
      }
    }

    private ByteBuffer end(byte why) {
      return ByteBuffer.allocate(HEADER + 4)
          .put(new byte[] {0, 0, 4, RST_STREAM, 0})
          .putInt(newest)
          .putInt(why)
          .flip();
    }

    void close() {
      try (client;
          sidecar) {
        // and nothing else
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
    }
  }
}
