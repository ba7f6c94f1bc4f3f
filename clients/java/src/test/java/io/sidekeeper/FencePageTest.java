package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What docs/fencing.md shows compiles and runs. */
class FencePageTest {
  private static final Pattern SNIPPET = Pattern.compile("(?ms)^```java\n(.*?)^```");

  /** What the page leaves out before its lines, and what the test asks behind them. */
  private static final String AROUND =
      """
      import com.sun.net.httpserver.*;
      import io.grpc.*;
      import io.sidekeeper.*;
      import io.sidekeeper.fence.*;
      import java.net.*;
      import java.net.http.*;
      import java.net.http.HttpResponse.BodyHandlers;
      import java.nio.file.Path;
      import java.util.List;

      class Page {
        static void enter(java.sql.Connection connection) throws Exception {
          %s
        }

        public static void main(String[] arguments) throws Exception {
          HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
          http.start();
          HttpHandler orders = exchange -> exchange.sendResponseHeaders(204, -1);
          var builder = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create());
          var plain = Grpc.newChannelBuilder("127.0.0.1:1", InsecureChannelCredentials.create()).build();
          var uri = URI.create("http://127.0.0.1:" + http.getAddress().getPort() + "/orders");
          for (long token : new long[] {7, 5}) {
            var scope = new Ticket("orders", token).guard();
            var request = HttpRequest.newBuilder(uri);
            if (token == 5) {
              http.removeContext("/orders");
            }
            %s
            System.out.println(
                HttpClient.newHttpClient().send(put, BodyHandlers.discarding()).statusCode()
                    + " " + (server != null && channel != null));
            scope.close();
          }
          plain.shutdownNow();
          http.stop(0);
          System.exit(0);
        }
      }
      """;

  @TempDir private Path folder;

  @Test
  void refusesWhatIsLate() throws IOException, InterruptedException {
    String page = Files.readString(Sidecar.ROOT.resolve("docs/fencing.md"));
    List<String> shown = SNIPPET.matcher(page).results().map(found -> found.group(1)).toList();
    assertEquals(2, shown.size());
    Path source = folder.resolve("Page.java");
    String snippet = shown.get(1).replace("/var/lib/shop", folder.toString());
    Files.writeString(source, AROUND.formatted(shown.get(0), snippet));
    String path = System.getProperty("java.class.path");
    String[] options = {"-proc:none", "-cp", path, "-d", folder.toString(), source.toString()};
    assertEquals(
        0, ToolProvider.getSystemJavaCompiler().run(null, System.err, System.err, options));
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    Path output = folder.resolve("output");
    Process process =
        new ProcessBuilder(java, "-cp", folder + ":" + path, "Page")
            .redirectOutput(output.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertTrue(process.waitFor(Sidecar.PATIENT, TimeUnit.SECONDS));
    assertEquals("204 true\n412 true\n", Files.readString(output));
  }
}
