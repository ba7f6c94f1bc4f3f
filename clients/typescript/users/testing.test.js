const { Client, LostError } = require("sidekeeper");
const { startSidecar } = require("sidekeeper/testing");

let sidecar;
beforeAll(async () => {
  sidecar = await startSidecar();
});
afterAll(() => sidecar.stop());

test("a worker stops when its lock is lost", async () => {
  const client = new Client({ address: sidecar.address });
  const work = client.withLock("orders", {}, async (lock, signal) => {
    const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await sidecar.expireLock("orders");
    await stopped;
  });
  await expect(work).rejects.toBeInstanceOf(LostError);
  client.close();
});
