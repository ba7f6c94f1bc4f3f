// The page: tabs, the list of one kind, its search, and how all of it follows what happens.
import { again, call, hasToken, own, Refusal } from "./api.js";
import { close, open } from "./detail.js";
import { kinds as plain } from "./kinds.js";
import { List } from "./list.js";
import { state } from "./state.js";
import { waits } from "./waits.js";
import { element, visible } from "./words.js";

const $ = (id) => document.getElementById(id);
const kinds = [plain[0], waits, ...plain.slice(1), state];
let kind, list, rows;
let asked = 0; // which answer is the newest

const shortest = 2000; // milliseconds between two looks at the health, and at how old things are

function select(next) {
  close();
  kind = next;
  rows = undefined;
  list = new List({
    label: kind.title, columns: kind.columns, key: kind.key, empty: kind.empty, open: openRow,
    seen: kind.seen && ((seen) => seen.forEach((row) => kind.seen(row, redraw))),
  });
  $("list").replaceChildren(list.node);
  $("search").value = "";
  $("count").textContent = "loading";
  for (const tab of $("tabs").children) {
    const chosen = tab.id === `tab-${kind.id}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", `tab-${kind.id}`);
  refresh(++asked);
}

function openRow(row) {
  if (kind.opens) {
    const [id, other] = kind.opens(row);
    select(kinds.find((one) => one.id === id));
    openRow(other);
  } else if (kind.watch || kind.get) {
    open(kind, row, () => list.focus());
  }
}

// redraw shows what came meanwhile, at most once a frame.
let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; list.draw(); });
}

const matches = (row, words) => (kind.matches ? kind.matches(row, words) : row.name.toLowerCase().includes(words));

// show shows those of these rows that are searched.
function show(some) {
  const words = $("search").value.trim().toLowerCase();
  const found = words === "" ? some : some.filter((row) => matches(row, words));
  list.show(found);
  const all = `${some.length.toLocaleString("en")}${rows ? "" : " so far"}${kind.note ? ` ${kind.note}` : ""}`;
  $("count").textContent = words === "" ? all : `${found.length.toLocaleString("en")} of ${all}`;
}

// refresh lists again and again, as long as nothing else was chosen.
function refresh(mine) {
  again(() => mine === asked, async () => {
    try {
      const early = rows === undefined && ((some) => { if (mine === asked) show(some); });
      const listed = await kind.list(early || undefined);
      if (mine !== asked) return;
      rows = listed;
      show(rows);
    } catch (error) {
      if (mine === asked) $("count").textContent = error instanceof Refusal ? error.message : "no answer";
    }
  });
}

function contact(words, level) {
  $("contact").textContent = words;
  $("contact").className = `badge ${level}`;
}

// health follows the sidecar and its ensemble.
async function health() {
  for (;;) {
    try {
      const { status } = await call("grpc.health.v1.Health/Check", { service: "sidekeeper.readiness" });
      if (status === "SERVING") contact("ensemble answers", "good");
      else contact("no contact with the ensemble", "bad");
      document.body.classList.remove("gone");
      document.body.dataset.live = "yes";
    } catch (error) {
      document.body.classList.add("gone");
      contact(error instanceof Refusal ? error.message : "the console has ended", "bad");
    }
    await new Promise((resolve) => { setTimeout(resolve, shortest); });
  }
}

function turnTab(event) {
  const at = kinds.indexOf(kind);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: kinds.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  select(kinds[(to + kinds.length) % kinds.length]);
  $(`tab-${kind.id}`).focus();
}

function press(event) {
  if ($("ask").open) return;
  if (event.key === "Escape" && !$("detail").hidden) {
    close();
    list.focus();
  } else if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    $("search").focus();
  }
}

async function begin() {
  if (!hasToken()) {
    contact("open the address that sidekeeper console printed: it has a token", "bad");
    return;
  }
  $("tabs").append(...kinds.map((one) =>
    element("button", { type: "button", role: "tab", id: `tab-${one.id}`, "aria-controls": "panel", onclick: () => select(one) }, one.title)));
  $("tabs").addEventListener("keydown", turnTab);
  $("search").addEventListener("input", () => { if (rows) show(rows); });
  document.addEventListener("keydown", press);
  addEventListener("resize", redraw);
  setInterval(() => { if (document.visibilityState === "visible") redraw(); }, shortest);
  select(kinds[0]);
  health();
  const known = await own("/about");
  $("about").textContent = `${visible(known.address)}, ${visible(known.version)}`;
}

begin();
