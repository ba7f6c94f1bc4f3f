package io.sidekeeper.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.integration.support.locks.LockRegistry;

/** The program that the README shows is one that runs. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class ReadmeTest {
  private static final String PATH = System.getProperty("java.class.path");

  @Test
  void theProgramRuns(Sidecar sidecar, @TempDir Path folder) throws Exception {
    String program = Files.readString(Path.of("src/test/java/user/Report.java"));
    String shown = "```java\n" + program.replaceFirst("^package .*\n\n", "") + "```\n";
    assertTrue(Files.readString(Path.of("README.md")).contains(shown), "it is not in the README");

    compile(program, folder);
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = folder + File.pathSeparator + PATH;
    ProcessBuilder command = new ProcessBuilder(java, "-cp", path, "user.Report");
    command.environment().put("SIDEKEEPER_ADDRESS", sidecar.address());
    command.redirectError(ProcessBuilder.Redirect.INHERIT);
    Process running = command.start();
    assertTrue(running.inputReader().lines().anyMatch("reported"::equals), "below the banner");
    assertEquals(0, running.waitFor());
  }

  /** Compiles it anew, with the Spring of this run. */
  private static void compile(String program, Path folder) throws IOException {
    boolean generic = LockRegistry.class.getTypeParameters().length > 0; // as the README says
    String source = generic ? program.replace("LockRegistry l", "LockRegistry<?> l") : program;
    Path file = Files.writeString(folder.resolve("Report.java"), source);
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    String[] arguments = {"-proc:none", "-cp", PATH, "-d", folder.toString(), file.toString()};
    assertEquals(0, compiler.run(null, null, null, arguments));
  }
}
