/** What docs/fencing.md shows compiles and runs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";

import { Project } from "./project.js";
import { ROOT } from "./sidecar.js";

/** What the page leaves out before its lines, and what the test asks behind them. */
const before = `
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client as Channel, Server, credentials } from "@grpc/grpc-js";
import { Ticket, fence } from "sidekeeper";

const address = "127.0.0.1:1";
const orders = (_: IncomingMessage, response: ServerResponse): unknown => response.end("put");
let url = "";
`;
const behind = `
http.listen(0, "127.0.0.1", async () => {
  url = \`http://127.0.0.1:\${(http.address() as AddressInfo).port}/orders\`;
  for (const token of [7n, 5n]) {
    const reply = await new Ticket("orders", token).guard(put);
    console.log(reply.status, await reply.text());
  }
  console.log((await put()).status);
  http.close();
  server.forceShutdown();
  channel.close();
});
`;

void test("what the page on fencing shows refuses what is late", (t) => {
  const page = readFileSync(path.join(ROOT, "docs/fencing.md"), "utf8");
  const shown = [...page.matchAll(/^```typescript\n(.*?)^```/gms)].map(([, lines]) => lines ?? "");
  assert.equal(shown.length, 1);
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  const project = new Project({ page: before + (shown[0] ?? "").replace("/var/lib/shop", folder) + behind });
  t.after(() => {
    project.remove();
    rmSync(folder, { recursive: true });
  });
  assert.equal(
    execFileSync(process.execPath, [project.compiled("page")], { encoding: "utf8", timeout: 30_000 }),
    "200 put\n412 lock orders: fencing token 5 is stale, since 7 has been seen: the lock was granted to another holder\n428\n",
  );
});
