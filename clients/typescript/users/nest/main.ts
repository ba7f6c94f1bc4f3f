// A process of a fleet whose jobs are begun by Nest. It writes down what it does, for jobs.js.
import { appendFileSync } from "node:fs";

import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, CronExpression, Interval, ScheduleModule } from "@nestjs/schedule";
import { Client } from "sidekeeper";
import { Led, Locked, SidekeeperModule } from "sidekeeper/nestjs";

function note(what: string, job: string): void {
  appendFileSync(process.env["JOBS_LOG"] ?? "", `${what} ${job} ${process.pid}\n`);
}

@Injectable()
class Reports {
  constructor(private readonly client: Client) {}

  @Cron(CronExpression.EVERY_SECOND)
  @Locked("nest/cron")
  async cron(signal: AbortSignal): Promise<void> {
    await this.client.config.put("nest/cron", "written while the lock is held");
    await this.run("cron", signal);
  }

  @Locked("nest/interval", { holdAtLeast: 0.1 })
  @Interval(500)
  async interval(signal: AbortSignal): Promise<void> {
    await this.run("interval", signal);
  }

  @Interval(500)
  @Led("nest/led")
  async led(signal: AbortSignal): Promise<void> {
    await this.run("led", signal);
  }

  @Interval(1000)
  tick(): void {
    note("tick", "-");
  }

  private async run(job: string, signal: AbortSignal): Promise<void> {
    note("begin", job);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    note("end", job);
  }
}

@Module({
  imports: [ScheduleModule.forRoot(), SidekeeperModule.forRootAsync({ useFactory: () => ({ shutdownGrace: 0 }) })],
  providers: [Reports],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ["warn", "error"] });
  app.enableShutdownHooks();
}

void main();
