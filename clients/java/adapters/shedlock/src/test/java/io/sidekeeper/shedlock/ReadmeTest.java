package io.sidekeeper.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The programs that the README shows are ones that run. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class ReadmeTest {
  @Test
  void theProgramsRun(Sidecar sidecar) throws Exception {
    assertEquals("reported", runs("Report", sidecar));
    assertEquals("reported", runs("Nightly", sidecar));
  }

  private static String runs(String name, Sidecar sidecar) throws Exception {
    String program = Files.readString(Path.of("src/test/java/user/" + name + ".java"));
    String shown = "```java\n" + program.replaceFirst("^package .*\n\n", "") + "```\n";
    assertTrue(Files.readString(Path.of("README.md")).contains(shown), "it is not in the README");

    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    ProcessBuilder command = new ProcessBuilder(java, "-cp", path, "user." + name);
    command.environment().put("SIDEKEEPER_ADDRESS", sidecar.address());
    command.redirectError(ProcessBuilder.Redirect.INHERIT);
    Process running = command.start();
    String said = running.inputReader().lines().collect(Collectors.joining(" "));
    assertEquals(0, running.waitFor());
    return said;
  }
}
