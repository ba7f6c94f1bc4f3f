/** What docs/fencing.md shows compiles and runs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";

import type { PoolClient } from "pg";

import { Ticket, fence } from "../src/index.js";
import { postgresql } from "./databases.js";
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

const page = readFileSync(path.join(ROOT, "docs/fencing.md"), "utf8");
const shown = [...page.matchAll(/^```typescript\n(.*?)^```/gms)].map(([, lines]) => lines ?? "");
const [transaction = "", service = ""] = shown;

void test("there are snippets", () => {
  assert.equal(shown.length, 2);
});

void test("the transaction that the page shows writes unless it is late", async (t) => {
  const database = await postgresql(t);
  await database.pool.query(
    `${fence.POSTGRESQL.create}; CREATE TABLE stock (number INTEGER NOT NULL); INSERT INTO stock VALUES (10)`,
  );
  const project = new Project({
    page: `
      import type { PoolClient } from "pg";
      import { fence, tickets } from "sidekeeper";
      export async function write(connection: PoolClient): Promise<void> {
        ${transaction}
      }`,
  });
  t.after(() => project.remove());
  const { write } = (await import(project.compiled("page"))) as { readonly write: (connection: PoolClient) => Promise<void> };
  const written = async (): Promise<void> => {
    const connection = await database.pool.connect();
    try {
      await write(connection);
    } finally {
      connection.release();
    }
  };
  const number = async (): Promise<number> => {
    const { rows } = await database.pool.query<{ readonly number: number }>(
      "UPDATE stock SET number = 10 RETURNING (SELECT number FROM stock)",
    );
    return rows[0]?.number ?? NaN;
  };
  await new Ticket("orders", 7n).guard(written);
  assert.equal(await number(), 4);
  await assert.rejects(new Ticket("orders", 5n).guard(written), { name: "RefusedError", largest: 7n });
  assert.equal(await number(), 10);
});

void test("what the page on fencing shows refuses what is late", (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  const project = new Project({ page: before + service.replace("/var/lib/shop", folder) + behind });
  t.after(() => {
    project.remove();
    rmSync(folder, { recursive: true });
  });
  assert.equal(
    execFileSync(process.execPath, [project.compiled("page")], { encoding: "utf8", timeout: 30_000 }),
    "200 put\n412 lock orders: fencing token 5 is stale, since 7 has been seen: the lock was granted to another holder\n428\n",
  );
});
