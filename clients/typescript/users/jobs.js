// Two processes have the same timers. The one that runs the jobs is killed; the other goes on, and never runs one beside it.
const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const path = require("node:path");

const folder = mkdtempSync(path.join(tmpdir(), "sk"));
const started = [];

async function until(what, happened) {
  for (const began = performance.now(); !happened();) {
    assert.ok(performance.now() - began < 180_000, `${what}: not within three minutes`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function takeOver(program, jobs) {
  const log = path.join(folder, path.basename(program));
  writeFileSync(log, "");
  const noted = () => readFileSync(log, "utf8").split("\n");
  const has = (what, { pid }) => jobs.every((job) => noted().includes(`${what} ${job} ${pid}`));
  const start = () => {
    const child = spawn(process.execPath, [program], { env: { ...process.env, JOBS_LOG: log }, stdio: "inherit" });
    started.push(child);
    return child;
  };

  const first = start();
  await until("the first begins all jobs", () => has("begin", first));
  const second = start();
  await until("the second has skipped ticks", () => noted().filter((line) => line === `tick - ${second.pid}`).length >= 3);
  appendFileSync(log, "killed\n");
  first.kill("SIGKILL");
  await until("the second goes on", () => has("begin", second));
  second.kill("SIGTERM");
  await once(second, "exit");

  const all = noted();
  const begun = (child) => all.filter((line) => line.startsWith("begin ") && line.endsWith(` ${child.pid}`)).length;
  assert.equal(begun(first), jobs.length);
  assert.equal(begun(second), jobs.length);
  assert.ok(all.findIndex((line) => line.startsWith("begin ") && line.endsWith(` ${second.pid}`)) > all.indexOf("killed"));
  assert.ok(has("end", second), "it did not wait for its jobs");
  console.log(`${path.relative(__dirname, program)}: ${jobs.length} jobs were taken over`);
}

async function main() {
  try {
    const timers = takeOver(path.join(__dirname, "timers.js"), ["interval", "led", "cron", "node-cron", "node-schedule"]);
    await Promise.all([timers, takeOver(path.join(__dirname, "nest/main.js"), ["cron", "interval", "led"])]);
  } finally {
    started.forEach((child) => child.kill("SIGKILL"));
    rmSync(folder, { recursive: true });
  }
}

void main();
