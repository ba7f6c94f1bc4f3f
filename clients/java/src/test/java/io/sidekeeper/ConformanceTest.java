package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.yaml.snakeyaml.Yaml;

/**
 * The scenarios that every client passes: clients/conformance/scenarios.yaml, where the steps are
 * explained.
 */
class ConformanceTest {
  private static List<Map<String, Object>> scenarios() throws IOException {
    try (Reader reader =
        Files.newBufferedReader(Sidecar.ROOT.resolve("clients/conformance/scenarios.yaml"))) {
      return new Yaml().load(reader);
    }
  }

  @TestFactory
  Stream<DynamicTest> passesTheScenarios() throws IOException {
    return scenarios().stream()
        .filter(ConformanceTest::isForJava)
        .map(
            scenario ->
                DynamicTest.dynamicTest((String) scenario.get("name"), () -> play(scenario)));
  }

  private static boolean isForJava(Map<String, Object> scenario) {
    return !scenario.containsKey("only") || ((List<?>) scenario.get("only")).contains("java");
  }

  @SuppressWarnings("unchecked")
  private static void play(Map<String, Object> scenario) throws Exception {
    try (Sidecar sidecar = new Sidecar((int) scenario.getOrDefault("leases", 4));
        Stage stage = new Stage(sidecar)) {
      Deeds deeds = new Deeds(stage);
      Expectations expectations = new Expectations(stage);
      for (Map<String, Object> fields : (List<Map<String, Object>>) scenario.get("steps")) {
        Step step = new Step(fields);
        if (step.has("do")) {
          deeds.play(step);
        } else {
          expectations.play(step);
        }
      }
    }
  }

  @Test
  void thereAreScenarios() throws IOException {
    assertTrue(scenarios().size() >= 40);
  }
}
