// Who waits for whom, over all locks that are waited for, as the console has seen it: circles first, then the longest waits.
import { own, Refusal } from "./api.js";
import { named, time, visible, who } from "./words.js";

// links are the holder, whom it waits for itself, and so on.
const links = ({ chain }) => chain.map((one, index) =>
  (index === 0 ? who(one) : named(one.owner)) + (index < chain.length - 1 ? ` waits for ${visible(one.lock)} of` : "")).join(" ");

const fresh = 10; // seconds after which what was seen has a time

// old says as of when something was seen, if that was not just now.
export const old = ({ age, failure }) => (failure || age > fresh ? `, as of ${time(age)} ago` : "");

// nobody says that no caller waits, as far as the last look tells.
export function nobody({ age, failure, refused, omitted }) {
  if (failure) return "It is not known who waits now.";
  const [waits, when] = age > fresh ? ["waited", ` ${time(age)} ago`] : ["waits", ""];
  return `No caller ${waits} for ${refused || omitted ? "the locks that were read" : "a lock"}${when}.`;
}

export const waits = {
  id: "waits", title: "Waits", key: (row) => row.name, order: { column: undefined }, empty: "",
  list: async () => {
    const seen = await own("/waits");
    if (seen.failure && seen.waits.length === 0) throw new Refusal(seen.failure);
    waits.empty = nobody(seen);
    const rows = seen.waits.map((one, place) => ({ ...one, name: `${one.waiter.lock}\u0000${one.token === "0" ? place : one.token}` }));
    waits.note = [seen.waiting > rows.length && `and ${(seen.waiting - rows.length).toLocaleString("en")} more behind them`,
      seen.omitted + seen.refused > 0 && `and those at ${seen.omitted + seen.refused} locks that were not read`].filter(Boolean).join(", ");
    return Object.assign(rows, { failure: seen.failure, age: seen.age });
  },
  columns: [
    { title: "who", className: "name", text: (row) => who(row.waiter), sort: (row) => row.waiter.owner },
    { title: "lease", className: "state wide", text: (row) => row.waiter.lease },
    { title: "for", className: "number", text: (row) => time(row.waiter.age), sort: (row) => row.waiter.age },
    { title: "lock", className: "name", text: (row) => visible(row.waiter.lock), sort: (row) => row.waiter.lock },
    { title: "held by", className: "name chain", text: (row) => (row.circle ? "CIRCLE: " : "") + links(row) },
  ],
  words: (row) => [row.waiter, ...row.chain].flatMap((one) => [one.owner, one.identity, one.lease, one.lock]),
  opens: (row) => ["locks", row.waiter.lock],
};
