package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sidekeeper.fence.RefusedException;
import io.sidekeeper.fence.SqlDialect;
import io.sidekeeper.fence.SqlStore;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mariadb.jdbc.MariaDbDataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Fencing tokens that are compared in the transaction that writes, on the databases themselves. */
@Timeout(120)
class FenceSqlTest {
  /** A server in a folder of its own, on a port of the loopback. */
  private static final class Server implements AutoCloseable {
    private static final boolean ROOT = "root".equals(System.getProperty("user.name"));

    final Path folder;
    final int port;
    private Process process;

    Server() throws IOException {
      folder = Files.createTempDirectory(Path.of("/tmp"), "sk");
      try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        port = free.getLocalPort();
      }
    }

    /** Databases do not run as root. */
    private ProcessBuilder command(String... words) throws IOException, InterruptedException {
      List<String> command = new ArrayList<>();
      if (ROOT) {
        run(new ProcessBuilder("chown", "nobody", folder.toString()));
        command.addAll(List.of("setpriv", "--reuid=nobody", "--clear-groups"));
      }
      command.addAll(List.of(words));
      command.set(command.size() - words.length, program(words[0]));
      return new ProcessBuilder(command)
          .directory(folder.toFile())
          .redirectErrorStream(true)
          .redirectOutput(folder.resolve("log").toFile());
    }

    private static String program(String name) throws IOException {
      try (Stream<Path> versions =
          Files.isDirectory(Path.of("/usr/lib/postgresql"))
              ? Files.list(Path.of("/usr/lib/postgresql"))
              : Stream.empty()) {
        Stream<String> folders = versions.map(version -> version + "/bin");
        String path = System.getenv("PATH") + File.pathSeparator + "/usr/sbin";
        return Stream.concat(folders, Stream.of(path.split(File.pathSeparator)))
            .map(folder -> Path.of(folder, name))
            .filter(Files::isExecutable)
            .findFirst()
            .orElseThrow(() -> new IOException("there is no " + name + ": see tools/need"))
            .toString();
      }
    }

    private static void run(ProcessBuilder command) throws IOException, InterruptedException {
      assertEquals(0, command.start().waitFor(), command.command()::toString);
    }

    void make(String... words) throws IOException, InterruptedException {
      run(command(words));
    }

    /** Returns when the server answers. */
    void start(DataSource database, String... words) throws IOException, InterruptedException {
      process = command(words).start();
      while (true) {
        try {
          database.getConnection().close();
          return;
        } catch (SQLException notYet) {
          if (process.waitFor(50, TimeUnit.MILLISECONDS)) {
            throw new IOException("it has ended", notYet);
          }
        }
      }
    }

    @Override
    public void close() throws IOException {
      if (process != null) {
        process.destroy();
        process.onExit().join();
      }
      try (Stream<Path> files = Files.walk(folder)) {
        files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
      }
    }
  }

  @Test
  void comparesTokensInPostgreSql() throws Exception {
    try (Server server = new Server()) {
      String data = server.folder + "/data";
      server.make("initdb", "--pgdata", data, "--username=test", "--auth=trust", "--no-sync");
      PGSimpleDataSource database = new PGSimpleDataSource();
      database.setUrl("jdbc:postgresql://127.0.0.1:" + server.port + "/postgres?user=test");
      String port = Integer.toString(server.port);
      String sockets = server.folder.toString();
      server.start(database, "postgres", "-D", data, "-k", sockets, "-h", "127.0.0.1", "-p", port);
      assertLateWritesAreRefused(database, SqlDialect.POSTGRESQL);
    }
  }

  @Test
  void comparesTokensInMariaDb() throws Exception {
    try (Server server = new Server()) {
      String data = "--datadir=" + server.folder + "/data";
      String normal = "--auth-root-authentication-method=normal";
      server.make("mariadb-install-db", "--no-defaults", data, normal, "--skip-test-db");
      MariaDbDataSource database =
          new MariaDbDataSource("jdbc:mariadb://127.0.0.1:" + server.port + "/mysql?user=root");
      server.start(
          database,
          "mariadbd",
          "--no-defaults",
          data,
          "--socket=" + server.folder + "/s.sock",
          "--pid-file=" + server.folder + "/pid",
          "--bind-address=127.0.0.1",
          "--port=" + server.port,
          "--innodb-buffer-pool-size=8M");
      assertLateWritesAreRefused(database, SqlDialect.MYSQL);
    }
  }

  private static void run(Connection connection, String statement) throws SQLException {
    try (Statement running = connection.createStatement()) {
      running.execute(statement);
    }
  }

  private static int number(Connection connection) throws SQLException {
    try (Statement asking = connection.createStatement();
        ResultSet found = asking.executeQuery("SELECT number FROM stock")) {
      found.next();
      return found.getInt(1);
    }
  }

  private static void write(DataSource database, SqlDialect dialect, Ticket ticket, int number)
      throws SQLException {
    try (Connection connection = database.getConnection()) {
      connection.setAutoCommit(false);
      dialect.enter(connection, ticket);
      run(connection, "UPDATE stock SET number = " + number);
      connection.commit();
    }
  }

  private static void assertLateWritesAreRefused(DataSource database, SqlDialect dialect)
      throws Exception {
    try (Connection connection = database.getConnection()) {
      run(connection, dialect.create());
      run(connection, "CREATE TABLE stock (number INTEGER NOT NULL)");
      run(connection, "INSERT INTO stock VALUES (10)");
      write(database, dialect, new Ticket("orders", 5), 9);
      write(database, dialect, new Ticket("orders", 7), 4);
      write(database, dialect, new Ticket("Orders", 1), 3);
      var late =
          assertThrows(
              RefusedException.class, () -> write(database, dialect, new Ticket("orders", 5), 8));
      assertEquals(7, late.largest());
      assertEquals(3, number(connection));

      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      assertEquals(3, number(connection)); // and has a snapshot
      SqlStore store = new SqlStore(database, dialect);
      assertEquals(9, store.raise("orders", 9));
      assertEquals(9, store.raise("orders", 8));
      assertThrows(Exception.class, () -> dialect.enter(connection, new Ticket("orders", 8)));
      connection.rollback();
    }
  }
}
