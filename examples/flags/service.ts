/**
 * A service whose feature flags follow the configuration live: no restart, no request that waits for the sidecar.
 *
 *     node service.js [PORT]
 *
 * A flag is a key below `flags/`: `on`, `off`, or a percentage of the users, as in `25%`.
 */

import { createHash } from "node:crypto";
import http from "node:http";

import { Client, type ConfigView } from "sidekeeper";

/** Seconds after which flags that could not be followed any more count for nothing: then each has its default. */
const OLDEST = 300;

class Flags {
  constructor(private readonly view: ConfigView) {}

  /** Whether a flag is on for a user. What is not set, not understood or too old is off. */
  on(flag: string, user: string): boolean {
    const entry = this.view.get(`flags/${flag}`);
    if (entry === undefined || this.age() > OLDEST) {
      return false;
    }
    const text = entry.value.toString().trim();
    const percent = /^(\d{1,3})%$/.exec(text)?.[1];
    return percent === undefined
      ? text === "on"
      : share(`${flag}/${user}`) < Number(percent);
  }

  age(): number {
    return this.view.age();
  }
}

/** Where a user stands among all: from 0 up to 100, the same each time. */
function share(user: string): number {
  return (
    (createHash("sha256").update(user).digest().readUInt32BE() / 2 ** 32) * 100
  );
}

function answer(flags: Flags, request: http.IncomingMessage): string {
  const user =
    new URL(request.url ?? "/", "http://localhost").searchParams.get("user") ??
    "";
  return flags.on("greeting", user) ? `Hello, ${user}!\n` : "Welcome.\n";
}

const client = new Client(); // where SIDEKEEPER_ADDRESS says
const view = await client.config.view("flags"); // complete from here on, and follows
const flags = new Flags(view);

const server = http.createServer((request, response) => {
  response.setHeader("X-Flags-Age", flags.age().toFixed(1));
  response.end(answer(flags, request));
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  const address = server.address();
  console.log(
    `listening on ${typeof address === "object" && address !== null ? address.port : String(address)}`,
  );
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    server.close();
    view.close();
    client.close();
  });
}
