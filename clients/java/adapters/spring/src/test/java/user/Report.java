package user;

import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.integration.support.locks.LockRegistry;

@SpringBootApplication
class Report {
  public static void main(String[] arguments) {
    SpringApplication.run(Report.class, arguments);
  }

  @Bean
  ApplicationRunner job(LockRegistry locks) {
    return given -> locks.executeLocked("report", () -> System.out.println("reported"));
  }
}
