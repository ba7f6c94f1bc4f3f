package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** What the README shows compiles and runs. */
class ReadmeTest {
  private static final Pattern SNIPPET = Pattern.compile("(?ms)^```java\n(.*?)^```");
  private static final Pattern IMPORTS = Pattern.compile("(?m)^import .*;\n+");
  private static final int UNSAFE_IS_TOLD = 24; // later versions of Java complain about Netty

  @TempDir private Path folder;

  private static List<String> shownIn(String file) {
    try {
      String text = Files.readString(Sidecar.ROOT.resolve(file));
      return SNIPPET.matcher(text).results().map((MatchResult found) -> found.group(1)).toList();
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  @TestFactory
  Stream<DynamicTest> aSnippetCompilesAndRuns() {
    return shownIn("clients/java/README.md").stream()
        .filter(snippet -> !isTest(snippet))
        .map(snippet -> DynamicTest.dynamicTest(snippet, () -> compileAndRun(snippet)));
  }

  private static boolean isTest(String snippet) {
    return snippet.contains("@Test");
  }

  /** It runs here as any other does. */
  @Test
  void theTestIsOneOfThese() throws IOException {
    List<String> tests =
        shownIn("clients/java/README.md").stream().filter(ReadmeTest::isTest).toList();
    Path file = Sidecar.ROOT.resolve("clients/java/src/test/java/user/WorkerTest.java");
    assertEquals(List.of(Files.readString(file).replaceFirst("^package .*\n\n", "")), tests);
  }

  private void compileAndRun(String snippet) throws IOException, InterruptedException {
    StringBuilder imports = new StringBuilder();
    IMPORTS.matcher(snippet).results().forEach(found -> imports.append(found.group()));
    String body = IMPORTS.matcher(snippet).replaceAll("");
    Path source = folder.resolve("Snippet.java");
    Files.writeString(
        source,
        imports
            + "class Snippet {\n  public static void main(String[] args) throws Exception {\n"
            + body
            + "  }\n}\n");
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    String path = System.getProperty("java.class.path");
    int compiled =
        compiler.run(
            null,
            System.err,
            System.err,
            "-Xlint:all,-processing,-path",
            "-Werror",
            "-proc:none",
            "-cp",
            path,
            "-d",
            folder.toString(),
            source.toString());
    assertEquals(0, compiled, snippet);
    run(path);
  }

  private void run(String path) throws IOException, InterruptedException {
    File output = folder.resolve("output").toFile();
    File complaints = folder.resolve("complaints").toFile();
    try (Sidecar sidecar = new Sidecar()) {
      String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
      ProcessBuilder command =
          new ProcessBuilder(java, "-cp", folder + File.pathSeparator + path, "Snippet")
              .redirectOutput(output)
              .redirectError(complaints);
      command.environment().put("SIDEKEEPER_ADDRESS", sidecar.address);
      Process process = command.start();
      assertTrue(process.waitFor(Sidecar.PATIENT, TimeUnit.SECONDS));
      String complaint = Files.readString(complaints.toPath());
      assertEquals(0, process.exitValue(), complaint);
      assertNotEquals("", Files.readString(output.toPath()));
      if (Runtime.version().feature() < UNSAFE_IS_TOLD) {
        assertEquals("", complaint);
      }
    }
  }

  @Test
  void thereAreSnippets() {
    assertEquals(15, shownIn("clients/java/README.md").size());
  }

  @Test
  void theRepositorysReadmeShowsTheSame() {
    String first = shownIn("clients/java/README.md").get(0);
    assertEquals(List.of(first.replaceFirst("^import .*\n\n", "")), shownIn("README.md"));
  }
}
