package io.sidekeeper.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The program that the README shows is one that runs. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class ReadmeTest {
  @Test
  void theProgramRuns(Sidecar sidecar) throws Exception {
    String program = Files.readString(Path.of("src/test/java/user/Report.java"));
    String shown = "```java\n" + program.replaceFirst("^package .*\n\n", "") + "```\n";
    assertTrue(Files.readString(Path.of("README.md")).contains(shown), "it is not in the README");

    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    ProcessBuilder command = new ProcessBuilder(java, "-cp", path, "user.Report");
    command.environment().put("SIDEKEEPER_ADDRESS", sidecar.address());
    command.redirectError(ProcessBuilder.Redirect.INHERIT);
    Process running = command.start();
    assertTrue(running.inputReader().lines().anyMatch("reported"::equals), "below the banner");
    assertEquals(0, running.waitFor());
  }
}
