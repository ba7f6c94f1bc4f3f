const { Client, LockHeldError } = require("sidekeeper");

test("a lock is held by one at a time", async () => {
  const client = new Client();
  const lock = await client.acquire("orders", { owner: "jest" });
  expect(lock.valid).toBe(true);
  await expect(client.acquire("orders", { wait: 0 })).rejects.toBeInstanceOf(LockHeldError);
  await lock.release();
  client.close();
});
