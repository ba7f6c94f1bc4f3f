/** Fencing tokens that are compared in the transaction that writes, on the databases themselves. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Client, Ticket, fence } from "../src/index.js";
import { type Database, type Transaction, mariadb, postgresql, sqlite } from "./databases.js";
import { ROOT, Sidecar } from "./sidecar.js";

const largest = 2n ** 63n - 1n;

async function transaction(database: Database, body: (begun: Transaction) => Promise<void>, how?: string): Promise<void> {
  const begun = await database.begin(how);
  try {
    await body(begun);
  } catch (error) {
    await begun.end("ROLLBACK");
    throw error;
  }
  await begun.end("COMMIT");
}

/** Writes what has been computed; without a ticket, as programs do that trust their lock. */
async function write(database: Database, number: number, ticket?: Ticket): Promise<void> {
  await transaction(database, async (begun) => {
    if (ticket !== undefined) {
      await begun.enter(ticket);
    }
    await begun.run(`UPDATE stock SET number = ${number}`);
  });
}

async function number(database: Database): Promise<number> {
  let read = NaN;
  await transaction(database, async (begun) => {
    read = Number((await begun.run("SELECT number FROM stock"))[0]?.["number"]);
  });
  return read;
}

async function emptied(database: Database): Promise<void> {
  await transaction(database, async (begun) => {
    await begun.run("DROP TABLE IF EXISTS fence");
    await begun.run("DROP TABLE IF EXISTS stock");
    await begun.run(database.dialect.create);
    await begun.run(database.dialect.create); // again, it does nothing
    await begun.run("CREATE TABLE stock (number INTEGER NOT NULL)");
    await begun.run("INSERT INTO stock VALUES (10)");
  });
}

const orders = (token: bigint): Ticket => new Ticket("orders", token);

/** Fails unless a larger token is said to have been seen. */
async function assertStale(written: Promise<void>, largest: bigint): Promise<void> {
  await assert.rejects(written, (error) => {
    assert.ok(error instanceof fence.RefusedError, String(error));
    assert.deepEqual([error.reason, error.largest], ["stale", largest]);
    return true;
  });
}

/** Whether a database has waited in vain, or found a snapshot too old. */
const refuses =
  ({ refusals }: Database) =>
  (error: unknown): boolean =>
    refusals.includes((error as { readonly code: string }).code);

/** A holder that goes on after another one has been granted its lock is what a frozen one looks like to the database. */
async function lateWrite(database: Database, sidecar: Sidecar, fenced: boolean): Promise<void> {
  using first = new Client({ address: sidecar.address });
  using second = new Client({ address: sidecar.address });
  const frozen = await first.acquire("orders");
  const computed = (await number(database)) - 1;
  await sidecar.expire("orders");
  const later = await second.withLock("orders", {}, async (lock) => {
    await write(database, (await number(database)) - 5, fenced ? lock.ticket() : undefined);
    return lock.fencingToken;
  });
  if (fenced) {
    await assertStale(write(database, computed, frozen.ticket()), later);
    assert.equal(await number(database), 5);
  } else {
    await write(database, computed);
    assert.equal(await number(database), 9, "five apples have been sold twice");
  }
}

/** What docs/fencing.md shows of a kind of statement, which the Go client's tests run. */
function shown(beginning: string): string[] {
  const page = readFileSync(path.join(ROOT, "docs/fencing.md"), "utf8");
  const statements = [...page.matchAll(/^```sql\n(.*?)\n```/gms)].map(([, statement]) => statement ?? "");
  return statements.filter((statement) => statement.startsWith(beginning));
}

void test("all languages make the same tables", () => {
  const made = [fence.POSTGRESQL, fence.MYSQL, fence.SQLITE].map(({ create }) => create);
  assert.deepEqual(shown("CREATE"), [...new Set(made)]);
});

const kinds = [
  { name: "PostgreSQL", start: postgresql, others: "$1" },
  { name: "MariaDB", start: mariadb, others: "DUPLICATE" },
  { name: "SQLite", start: sqlite, others: "MAX" },
];

for (const { name, start, others } of kinds) {
  void test(`${name} compares fencing tokens`, async (t) => {
    const database = await start(t);

    for (const fenced of [true, false]) {
      await t.test(`the late write of a frozen holder ${fenced ? "is refused" : "damages without a fence"}`, async (t) => {
        await emptied(database);
        const sidecar = await Sidecar.start();
        t.after(async () => sidecar.end());
        await lateWrite(database, sidecar, fenced);
      });
    }

    await t.test("a holder writes as often as it likes", async () => {
      await emptied(database);
      for (const token of [5n, 5n, largest - 1n, largest, largest]) {
        await write(database, 1, orders(token));
      }
      await assertStale(write(database, 2, orders(largest - 1n)), largest);
      assert.equal(await number(database), 1);
    });

    await t.test("locks whose names differ in case alone have marks of their own", async () => {
      await emptied(database);
      await write(database, 1, new Ticket("Orders/EU", 7n));
      await write(database, 1, new Ticket("orders/eu", 5n));
      await assertStale(write(database, 1, new Ticket("Orders/EU", 6n)), 7n);
    });

    for (const [begun, later] of [
      [5n, 7n],
      [7n, 5n],
    ] as const) {
      await t.test(`a transaction with ${later} waits for one with ${begun}`, async () => {
        await emptied(database);
        await transaction(database, async (first) => {
          await first.enter(orders(begun));
          await assert.rejects(write(database, 1, orders(later)), refuses(database));
        });
        await (later > begun ? write(database, 1, orders(later)) : assertStale(write(database, 1, orders(later)), begun));
      });
    }

    await t.test("what is rolled back leaves no mark", async () => {
      await emptied(database);
      const begun = transaction(database, async (first) => {
        await first.enter(orders(7n));
        throw new Error("on second thoughts");
      });
      await assert.rejects(begun, /on second thoughts/);
      await write(database, 1, orders(5n));
    });

    await t.test("a snapshot that is older than the mark lets no late write pass", async () => {
      await emptied(database);
      await write(database, 3, orders(3n));
      const read = async (late: Transaction): Promise<void> => {
        assert.equal(Number((await late.run("SELECT number FROM stock"))[0]?.["number"]), 3);
        await write(database, 7, orders(7n));
        await late.enter(orders(5n));
      };
      const refused = (error: unknown): boolean => error instanceof fence.RefusedError || refuses(database)(error);
      await assert.rejects(transaction(database, read, database.snapshot), refused);
      assert.equal(await number(database), name === "SQLite" ? 3 : 7); // its readers keep writers out
    });

    await t.test("of raises at once no smaller one passes after a larger one", async () => {
      await emptied(database);
      let passed = 0n;
      const raise = async (token: bigint): Promise<void> => {
        const before = passed;
        try {
          const mark = await database.store.raise("orders", token);
          assert.ok(mark >= before && mark >= token);
          passed = mark > passed ? mark : passed;
        } catch (error) {
          assert.ok(refuses(database)(error), String(error)); // it has waited in vain, and a gate refuses the call
        }
      };
      await Promise.all(Array.from({ length: 100 }, async (_, at) => raise(BigInt(((at * 37) % 100) + 1))));
      assert.equal(await database.store.raise("orders", 1n), passed);
    });

    await t.test("the marks of other languages are judged, and theirs by ours", async () => {
      await emptied(database);
      const [raise = ""] = shown("INSERT").filter((statement) => statement.includes(others));
      await transaction(database, async (begun) => {
        await begun.run(raise, "orders", 7n);
      });
      await assertStale(write(database, 1, orders(5n)), 7n);
      assert.equal(await database.store.raise("orders", 9n), 9n);
      await transaction(database, async (begun) => {
        await begun.run(raise, "orders", 8n);
        assert.equal(Number((await begun.run("SELECT token FROM fence"))[0]?.["token"]), 9);
      });
    });
  });
}

void test("a store raises no mark in another transaction, which might be rolled back", async (t) => {
  const database = await sqlite(t);
  await emptied(database);
  const connection = database.open();
  const store = new fence.SqlStore(connection, fence.SQLITE);
  connection.exec("BEGIN");
  await assert.rejects(store.raise("orders", 7n), /within a transaction/);
  connection.exec("COMMIT");
  assert.equal(await store.raise("orders", 5n), 5n);
});
