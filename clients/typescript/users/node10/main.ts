import { Client, type Lock, LostError, SidekeeperError } from "sidekeeper";
import { type Sidecar, startSidecar } from "sidekeeper/testing";

async function work(lock: Lock, signal: AbortSignal): Promise<bigint> {
  signal.throwIfAborted();
  return lock.fencingToken;
}

async function expire(sidecar: Sidecar): Promise<void> {
  const lock = await sidecar.client.acquire("orders");
  await sidecar.expireLock("orders");
  await sidecar.client.acquire("orders", { wait: 10 });
  if (lock.valid) throw new Error("two hold the lock");
  await sidecar.stop();
}

async function main(): Promise<void> {
  const client = new Client();
  try {
    console.log(__dirname, "held orders with token", await client.withLock("orders", { owner: "typed" }, work));
  } catch (error) {
    if (error instanceof LostError || error instanceof SidekeeperError) console.error(error.message);
    throw error;
  } finally {
    client.close();
  }
  await expire(await startSidecar());
}

void main();
