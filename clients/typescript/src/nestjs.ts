/**
 * Sidekeeper in a NestJS application: a client and jobs to inject, and decorators for methods that one process runs at a time.
 *
 * @packageDocumentation
 */

import "reflect-metadata";

import { ConfigurableModuleBuilder, Inject, Logger, Module } from "@nestjs/common";

import { CLIENT_OPTIONS, Client, type ClientOptions } from "./client.js";
import { JOBS_OPTIONS, type Job, Jobs, type JobsOptions, LOCKED_OPTIONS, type LockedOptions, type JobTick } from "./jobs.js";
import { type Rules, checkOptions, pick, timespan } from "./options.js";

/** How to reach the sidecar, and how jobs are run. Without a logger, Nest's is used; without `onError`, methods reject with their errors. */
export interface SidekeeperModuleOptions extends ClientOptions, JobsOptions {
  /** Seconds that jobs get to end at shutdown before their signals are aborted, by default 10. */
  readonly shutdownGrace?: number;
}

const OPTIONS: Rules<SidekeeperModuleOptions> = { ...CLIENT_OPTIONS, ...JOBS_OPTIONS, shutdownGrace: timespan };

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<SidekeeperModuleOptions>()
  .setClassMethodName("forRoot")
  .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build();

/**
 * Provides Client and Jobs to all modules, unless `isGlobal` is false: `forRoot({ address })` or `forRootAsync({ useFactory, inject })`. When the
 * application shuts down, it waits for jobs, and then closes the client: call `enableShutdownHooks()` in main, or SIGTERM shuts nothing down.
 */
export class SidekeeperModule extends ConfigurableModuleClass {}

/** Jobs that end with the application: they are waited for before other modules close what jobs use. */
class ApplicationJobs extends Jobs {
  constructor(
    private readonly ofApplication: Client,
    private readonly options: SidekeeperModuleOptions,
  ) {
    super(ofApplication, { onError: raise, ...pick(options, JOBS_OPTIONS) });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.close(this.options.shutdownGrace);
  }

  onApplicationShutdown(): void {
    this.ofApplication.close();
  }
}

function raise(error: unknown): never {
  throw error;
}

Module({
  providers: [
    {
      provide: Client,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: (options: SidekeeperModuleOptions) => {
        checkOptions(options, OPTIONS);
        return new Client({ logger: new Logger("Sidekeeper"), ...pick(options, CLIENT_OPTIONS) });
      },
    },
    {
      provide: Jobs,
      inject: [Client, MODULE_OPTIONS_TOKEN],
      useFactory: (client: Client, options: SidekeeperModuleOptions) => new ApplicationJobs(client, options),
    },
  ],
  exports: [Client, Jobs],
})(SidekeeperModule);

/** Where a class with a decorated method has its jobs. */
const JOBS = Symbol("jobs");

/** A decorator of a method that is a job: it takes a signal or nothing, and returns nothing. */
export type JobDecorator = <Method extends Job>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Has the method run only in the process that is granted the lock, as Jobs.locked does; elsewhere a call does nothing. Regardless of its caller,
 * such as `@Cron`, above or below, the method gets a signal and no other argument. A call settles when the lock is released, and rejects with
 * what the method throws, which Nest's scheduler logs.
 */
export function Locked(name: string, options: LockedOptions = {}): JobDecorator {
  checkOptions(options, LOCKED_OPTIONS);
  return decorated((jobs, job) => jobs.locked(name, options, job));
}

/** Has the method run only while this process leads the election, as Jobs.led does; elsewhere a call does nothing. The rest is as with Locked. */
export function Led(election: string): JobDecorator {
  return decorated((jobs, job) => jobs.led(election, job));
}

function decorated(tickOf: (jobs: Jobs, job: Job) => JobTick): JobDecorator {
  return (target, key, descriptor) => {
    const method: Job | undefined = descriptor.value;
    if (method === undefined) {
      throw new TypeError(`${String(key)} is not a method`);
    }
    Inject(Jobs)(target, JOBS);
    const ticks = new WeakMap<object, JobTick>();
    const run = async function (this: { readonly [JOBS]?: Jobs }): Promise<void> {
      const jobs = this[JOBS];
      if (jobs === undefined) {
        throw new Error(`${String(key)} runs under Sidekeeper only in a provider that Nest has made`);
      }
      const tick = ticks.get(this) ?? tickOf(jobs, async (signal) => method.call(this, signal));
      ticks.set(this, tick);
      await tick();
    };
    for (const known of Reflect.getMetadataKeys(method)) {
      Reflect.defineMetadata(known, Reflect.getMetadata(known, method), run);
    }
    descriptor.value = Object.defineProperty(run, "name", { value: key }) as Job as Exclude<typeof descriptor.value, undefined>;
  };
}
