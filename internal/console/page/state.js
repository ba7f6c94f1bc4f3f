// How the sidecar and its ensemble do, as the sidecar's admin listener says.
import { own } from "./api.js";
import { time, visible } from "./words.js";

const milliseconds = (count) => `${(count * 1000).toFixed(1)} ms`;

function facts(state) {
  const c = state.counts;
  const rows = [
    ["sidecar", `${visible(state.version)}, up for ${time(state.uptime)}${state.draining ? ", stopping" : ""}`],
    ["ensemble", state.reachable ? "answers" : "DOES NOT ANSWER"],
    ["leases", `${c.leases} of ${c.maxLeases}, ${c.suspended} of them suspended`], ["locks held", c.holds], ["waiting", c.waiters],
    ["members", c.members], ["connections", c.connections], ["late heartbeats", state.late],
  ];
  for (const [of, reasons] of Object.entries(state.losses)) {
    for (const [reason, count] of Object.entries(reasons ?? {})) rows.push([`${of} lost, ${reason}`, count]);
  }
  for (const one of state.latency ?? []) {
    rows.push([`ensemble, ${one.operation}`, `${one.rate.toFixed(1)} a second, p50 ${milliseconds(one.p50)}, p99 ${milliseconds(one.p99)}`]);
  }
  return rows.map(([name, value], place) => ({ name, value, place }));
}

export const state = {
  id: "health", title: "Health", note: "this sidecar alone", uncounted: true, key: (row) => row.name, empty: "Nothing is known.",
  list: async () => facts(await own("/state")),
  columns: [
    { title: "what", className: "name", text: (row) => row.name, sort: (row) => row.place },
    { title: "is", className: "name", text: (row) => row.value },
  ],
};
