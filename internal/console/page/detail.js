// One lock, group or the like, as it is at every moment.
import { longest, patience, Refusal, watch } from "./api.js";
import { ask } from "./ask.js";
import { claims } from "./claims.js";
import { breakHold, revoke } from "./kinds.js";
import { List } from "./list.js";
import { explain } from "./why.js";
import { element, stamped, visible, who } from "./words.js";

const place = document.getElementById("detail");
const pause = 1000; // milliseconds until a stream that ended, or a value, is asked for again

let stop;

export function close() {
  stop?.abort();
  stop = undefined;
  place.hidden = true;
  place.replaceChildren();
}

// open shows one of a kind, until another one is opened; left is called when a person closes it.
export function open(kind, row, left) {
  close();
  stop = new AbortController();
  const signal = stop.signal;
  const content = element("div", {});
  const status = element("p", { role: "status", class: "quiet" }, "loading");
  const more = kind.explained ? [explain(row.name, signal)] : [];
  place.replaceChildren(
    element("div", { class: "bar" }, element("h2", { tabindex: "-1" }, visible(row.name)),
      element("button", { type: "button", onclick: left }, "Close")), status, content, ...more);
  place.hidden = false;
  place.querySelector("h2").focus();
  follow(kind, row, shower(kind, row, content), status, signal);
  const older = setInterval(() => [content, ...more].forEach((one) => one.dispatchEvent(new Event("older"))), pause);
  signal.addEventListener("abort", () => clearInterval(older));
}

async function follow(kind, row, show, status, signal) {
  while (!signal.aborted) {
    if (!kind.watch && document.visibilityState !== "visible") {
      await new Promise((resolve) => { setTimeout(resolve, pause); });
      continue;
    }
    const begun = performance.now();
    try {
      if (kind.watch) {
        await watch(...kind.watch(row), (message) => {
          show(stamped(message.view));
          say(status, message.stale ? "may be out of date: the ensemble does not answer" : "", "live");
        }, signal);
      } else {
        show(await kind.get(row));
        say(status, "", "");
      }
    } catch (error) {
      if (signal.aborted) return;
      say(status, error instanceof Refusal ? error.message : "the sidecar does not answer");
    }
    const rest = kind.watch ? 0 : Math.min(longest, patience * (performance.now() - begun));
    await new Promise((resolve) => { setTimeout(resolve, Math.max(pause, rest)); });
  }
}

// say says what is wrong with what is shown below, and marks that; if nothing is, how it is shown.
function say(status, wrong, otherwise) {
  status.textContent = wrong || otherwise;
  status.className = wrong ? "bad-text" : "quiet";
  status.nextElementSibling.classList.toggle("stale", wrong !== "");
  status.nextElementSibling.dispatchEvent(new Event("older"));
}

function shower(kind, row, content) {
  const shows = [kind.facts && facts(kind, content), kind.actions && buttons(kind, content), kind.parts && parts(kind, row, content)].filter(Boolean);
  return (got) => shows.forEach((show) => show(got));
}

function facts(kind, content) {
  const list = element("dl", {});
  const text = element("pre", { tabindex: "0", "aria-label": "value" });
  content.append(list, ...(kind.text ? [text] : []));
  return (got) => {
    list.replaceChildren(...kind.facts(got).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
    if (kind.text) text.textContent = kind.text(got).replace(/[^\P{C}\n\t]/gu, (c) => visible(c));
  };
}

// buttons are what can be done now. One that stays is the same element, so that it keeps the focus.
function buttons(kind, content) {
  const shown = element("div", { class: "buttons" });
  let titles = "";
  let now = [];
  content.append(shown);
  return (got) => {
    now = kind.actions(got);
    const wanted = now.map((one) => one.title).join();
    if (wanted === titles) return;
    titles = wanted;
    const before = new Map([...shown.children].map((one) => [one.textContent, one]));
    shown.replaceChildren(...now.map(({ title }) => before.get(title)
      ?? element("button", { type: "button", onclick: () => now.find((one) => one.title === title)?.act() }, title)));
  };
}

// parts are tables of their own, which stay where they are while what is in them changes.
function parts(kind, row, content) {
  const shown = [];
  let claimed = () => {};
  const actions = element("div", { class: "buttons" });
  const mayBreak = kind.mayBreak?.(row); // not what only another library's program can have named
  if (mayBreak) {
    actions.append(element("button", { type: "button", onclick: () => askToRelease(row.name) }, "Ask to release…"), " ");
    content.append(actions);
    claimed = claims(row.name, actions, content);
  }
  return (view) => {
    claimed(view);
    kind.parts(view, row.name).forEach((part, index) => {
      const columns = part.breakable && mayBreak ? [...part.columns, breaking(row.name)] : part.columns;
      shown[index] ??= table(part, columns, content);
      const { title, list } = shown[index];
      title.textContent = `${part.title}: ${part.rows.length}${part.omitted ? ` and ${part.omitted} more` : ""}`;
      list.columns = columns;
      list.node.style.setProperty("--rows", Math.min(10, Math.max(1, part.rows.length)));
      part.rows.forEach((one, place) => { one.line = one.token || one.member || `#${place}`; }); // what may not be read has no token
      list.show(part.rows);
    });
  };
}

function table({ title: label, empty = "none" }, columns, content) {
  const title = element("h3", {});
  const list = new List({ label, columns, key: (one) => one.line, empty });
  list.node.classList.add("inner");
  list.view.setAttribute("tabindex", "0"); // so that it can be scrolled with the keyboard
  content.append(title, list.node);
  content.addEventListener("older", () => {
    list.empty = content.classList.contains("stale") ? "This is not known now." : empty;
    list.draw();
  });
  return { title, list };
}

const breaking = (name) => ({
  title: "end it", className: "action",
  make: (one) => (one.token ? element("button", { type: "button", class: "danger", onclick: () => askToBreak(name, one) }, "Break…") : ""),
});

function askToBreak(name, holder) {
  ask({
    title: `Break the hold of ${visible(name)}?`, yes: "Break it",
    text: `${who(holder)} loses the lock. If its sidecar does not answer, the lock goes to the next one after the lease's time, and the holder may not know in time. This can take most of a minute.`,
    act: ({ reason }) => breakHold(name, holder.token, reason),
  });
}

function askToRelease(name) {
  ask({
    title: `Ask the holders of ${visible(name)} to release it?`, yes: "Ask them", withGrace: true,
    text: "Each holder is told the reason and by whom it was asked. It may go on, unless there is a time after which it is ended.",
    act: ({ reason, grace }) => revoke(name, reason, grace),
  });
}
