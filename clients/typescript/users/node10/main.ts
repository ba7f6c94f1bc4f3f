import { Client, type Lock, LostError, SidekeeperError } from "sidekeeper";

async function work(lock: Lock, signal: AbortSignal): Promise<bigint> {
  signal.throwIfAborted();
  return lock.fencingToken;
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
}

void main();
