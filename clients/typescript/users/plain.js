const assert = require("node:assert/strict");
const { Client, LockHeldError } = require("sidekeeper");

async function main() {
  const client = new Client();
  const token = await client.withLock("orders", { owner: "plain" }, async (lock) => {
    await assert.rejects(client.acquire("orders", { wait: 0 }), LockHeldError);
    return lock.fencingToken;
  });
  client.close();
  console.log("CommonJS held orders with token", token);
}

void main();
