// Schedules: what is planned, what became of it, and what an operator does about it.
import { call, listed } from "./api.js";
import { ask } from "./ask.js";
import { moment, seconds, time, visible, who } from "./words.js";

const schedule = "sidekeeper.schedule.v1.ScheduleService";

const word = (of) => (of ?? "").replace(/^[A-Z]+_/, "").toLowerCase();

// state is what a person should know first, as `sidekeeper schedule ls` says it.
function state(row) {
  if (!row.cron) return "malformed";
  if (row.running) return word(row.running.state);
  if (row.paused) return "paused";
  return row.nextTooFar ? "next-too-far" : "waiting";
}

const last = (row) => (row.last ? word(row.last.state) : "–");

// took is for how long an attempt ran that was finished. That of one that was lost is not known.
function took(one) {
  const ended = one.state === "STATE_SUCCEEDED" || one.state === "STATE_FAILED";
  return ended ? time(Math.max(0, (Date.parse(one.ended) - Date.parse(one.begun)) / 1000)) : "";
}

const what = (one) => (one.missed ? `${one.missed} ticks` : one.runId ? `run ${visible(one.runId)}` : "tick");

const put = (name, paused) => call(`${schedule}/Put`, { name, paused });

function actions(got) {
  const name = visible(got.name);
  const pause = {
    title: "Pause…", act: () => ask({
      title: `Pause ${name}?`, yes: "Pause it", withoutReason: true,
      text: "No tick begins or is repeated on any machine until it is resumed. The ticks that pass meanwhile are left out. What runs goes on.",
      act: () => put(got.name, true),
    }),
  };
  const resume = {
    title: "Resume…", act: () => ask({
      title: `Resume ${name}?`, yes: "Resume it", withoutReason: true,
      text: "It goes on with the first tick after now. The ticks that have passed are left out.",
      act: () => put(got.name, false),
    }),
  };
  const run = {
    title: "Run now…", act: () => {
      const id = `console-${crypto.randomUUID()}`; // asking again, after a reply that was lost, is the same run
      ask({
        title: `Run ${name} now?`, yes: "Run it", withoutReason: true,
        text: "The work begins as soon as a machine is free, even if the schedule is paused. It changes no tick.",
        act: () => call(`${schedule}/Run`, { name: got.name, id }),
      });
    },
  };
  return [got.paused ? resume : pause, run];
}

export const schedules = {
  id: "schedules", title: "Schedules", key: (row) => row.name,
  empty: "There is no schedule. To make one: sidekeeper schedule put reports '30 2 * * *'",
  list: (tell) => listed(`${schedule}/List`, {}, "schedules", tell),
  columns: [
    { title: "name", className: "name", text: (row) => visible(row.name), sort: (row) => row.name },
    { title: "line", className: "wide", text: (row) => visible(row.cron) },
    { title: "zone", className: "spare", text: (row) => visible(row.timeZone) },
    { title: "next", className: "name", text: (row) => moment(row.next), sort: (row) => row.next ?? "" },
    { title: "state", className: "state", text: state, sort: state },
    { title: "last", className: "state", text: last, sort: last },
  ],
  get: async (row) => {
    const [{ schedule: got }, { outcomes = [] }] = await Promise.all([
      call(`${schedule}/Get`, { name: row.name }), call(`${schedule}/History`, { name: row.name }),
    ]);
    return { ...got, outcomes };
  },
  facts: (got) => [
    ["line", visible(got.cron)], ["zone", visible(got.timeZone)], ["next", moment(got.next)], ["state", state(got)],
    ...(got.running ? [["attempt", `${got.running.attempt} at ${moment(got.running.tick)}, by ${who(got.running)}`]] : []),
    ["misfire", `${word(got.misfire)}, ${time(seconds(got.startWithin))}`], ["on loss", word(got.onLoss)], ["runs that wait", got.waitingRuns ?? 0],
    ...(got.last?.note ? [["last note", visible(got.last.note)]] : []),
  ],
  actions,
  parts: (got) => [{
    title: "History, the newest first", rows: got.outcomes, empty: "no outcome yet", columns: [
      { title: "due", className: "name", text: (one) => moment(one.tick) },
      { title: "what", className: "spare", text: what },
      { title: "state", className: "state", text: (one) => word(one.state) },
      { title: "took", className: "number", text: took },
      { title: "by", className: "wide", text: (one) => (one.attempt ? who(one) : "") },
      { title: "note", className: "name", text: (one) => (one.note ? visible(one.note) : "") },
    ],
  }],
};
