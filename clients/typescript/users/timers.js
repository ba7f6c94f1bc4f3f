// A process of a fleet whose jobs are begun by four timers. It writes down what it does, for jobs.js.
const { appendFileSync } = require("node:fs");
const { CronJob } = require("cron");
const cron = require("node-cron");
const schedule = require("node-schedule");
const { Client, Jobs } = require("sidekeeper");

const note = (what, job) => appendFileSync(process.env.JOBS_LOG, `${what} ${job} ${process.pid}\n`);
const job = (name) => async (signal) => {
  note("begin", name);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  note("end", name);
};

const client = new Client();
const jobs = new Jobs(client);
setInterval(jobs.locked("timers/interval", { holdAtLeast: 0.1 }, job("interval")), 500);
setInterval(jobs.led("timers/led", job("led")), 500);
new CronJob("* * * * * *", jobs.locked("timers/cron", {}, job("cron"))).start();
cron.schedule("* * * * * *", jobs.locked("timers/node-cron", {}, job("node-cron")));
schedule.scheduleJob("* * * * * *", jobs.locked("timers/node-schedule", {}, job("node-schedule")));
setInterval(() => note("tick", "-"), 1000);

process.once("SIGTERM", async () => {
  await jobs.close(0);
  client.close();
  process.exit();
});
