// A table of which only the rows that can be seen are in the page, however many there are.
import { element } from "./words.js";

const height = 40; // pixels of a row, as in the style sheet
const spare = 8; // rows above and below those that are seen
const none = Symbol("none"); // the key of the line that stands there if there is no row

export class List {
  // columns are {title, text(row) or make(row), to(row), sort(row), className}: to is the address that the text leads to; seen is told the rows that are shown; empty is what is said if there is none.
  constructor({ label, columns, key, order = { column: 0, down: false }, open, seen, empty = "" }) {
    Object.assign(this, { columns, key, order, open, seen, empty });
    this.rows = [];
    this.lines = new Map(); // the elements of those that can be seen, by key
    this.current = undefined; // key of the row that has the focus, or will have it
    this.head = element("div", { role: "row", class: "row head", "aria-rowindex": 1 });
    this.space = element("div", { class: "space", role: "presentation" });
    this.view = element("div", { class: "rows", role: "rowgroup", onscroll: () => this.draw() }, this.space);
    this.node = element("div", { class: "grid", role: open ? "grid" : "table", "aria-label": label },
      element("div", { role: "rowgroup" }, this.head), this.view);
    this.node.addEventListener("keydown", (event) => this.press(event));
    this.drawHead();
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column, index) => {
      const sorted = this.order.column === index;
      const direction = sorted ? (this.order.down ? "descending" : "ascending") : undefined;
      const title = column.sort
        ? element("button", { type: "button", onclick: () => this.sortBy(index) }, column.title, sorted ? (this.order.down ? " ↓" : " ↑") : "")
        : column.title;
      return element("div", { role: "columnheader", class: column.className, "aria-sort": direction }, title);
    }));
  }

  sortBy(column) {
    this.order = { column, down: this.order.column === column && !this.order.down };
    this.drawHead();
    this.show(this.rows);
  }

  // show shows these rows instead of those before, at the same place.
  show(rows) {
    const by = this.columns[this.order.column]?.sort;
    if (by) {
      const keyed = rows.map((row) => [by(row), row]);
      keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (this.order.down ? -1 : 1));
      rows = keyed.map(([, row]) => row);
    }
    this.rows = rows;
    this.node.setAttribute("aria-rowcount", rows.length + 1);
    this.space.style.height = `${Math.max(1, rows.length) * height}px`;
    this.draw();
  }

  // draw shows the rows that can be seen. A row that was there stays the same element, so that nothing is lost of what a person does to it.
  draw() {
    const room = this.view.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.view.scrollTop / height) - spare);
    const last = Math.min(this.rows.length, Math.ceil((this.view.scrollTop + room) / height) + spare);
    const at = this.rows.findIndex((row) => this.key(row) === this.current);
    if (at < first || at >= last) this.current = this.rows.length ? this.key(this.rows[Math.min(this.rows.length - 1, Math.ceil(this.view.scrollTop / height))]) : undefined;
    const focused = this.space.contains(document.activeElement);
    const lines = new Map();
    for (let index = first; index < last; index++) {
      const key = this.key(this.rows[index]);
      lines.set(key, this.update(this.lines.get(key) ?? this.line(key), this.rows[index], index));
    }
    if (this.rows.length === 0) {
      lines.set(none, element("div", { role: "row", class: "row none" }, element("div", { role: this.open ? "gridcell" : "cell" }, this.empty)));
    }
    for (const [key, line] of this.lines) if (lines.get(key) !== line) line.remove();
    this.lines = lines;
    let before = this.space.firstChild;
    for (const line of lines.values()) {
      if (line === before) before = before.nextSibling;
      else this.space.insertBefore(line, before);
    }
    if (focused && !this.space.contains(document.activeElement)) this.space.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
    this.seen?.(this.rows.slice(first, last));
  }

  line(key) {
    const cells = this.columns.map((column) => element("div", { role: this.open ? "gridcell" : "cell", class: column.className }));
    const opens = () => { this.current = key; this.draw(); this.open(this.rows.find((row) => this.key(row) === key)); };
    return element("div", { role: "row", class: "row", ...(this.open && { onclick: opens }) }, ...cells);
  }

  update(line, row, index) {
    line.setAttribute("aria-rowindex", index + 2);
    if (this.open) line.tabIndex = this.key(row) === this.current ? 0 : -1;
    line.style.transform = `translateY(${index * height}px)`;
    this.columns.forEach((column, at) => {
      const cell = line.children[at];
      if (column.make) {
        if (!cell.firstChild) cell.append(column.make(row));
        return;
      }
      const text = String(column.text(row));
      const to = column.to?.(row);
      if (to !== (cell.firstElementChild?.getAttribute("href") ?? undefined)) cell.replaceChildren(to ? element("a", { href: to }) : "");
      if (cell.textContent !== text) (cell.firstElementChild ?? cell).textContent = cell.title = text;
    });
    return line;
  }

  press(event) {
    if (!this.open || event.target.tagName === "BUTTON") return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / height) - 1);
    const at = this.rows.findIndex((row) => this.key(row) === this.current);
    const to = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.rows.length - 1,
    }[event.key];
    if (event.key === "Enter" && at >= 0) this.open(this.rows[at]);
    if (to === undefined || at < 0) return;
    event.preventDefault();
    this.focus(Math.min(this.rows.length - 1, Math.max(0, to)));
  }

  // focus brings a row into view and gives it the focus.
  focus(index = this.rows.findIndex((row) => this.key(row) === this.current)) {
    if (index < 0) return;
    this.current = this.key(this.rows[index]);
    const top = index * height;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + height > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = top + height - this.view.clientHeight;
    this.draw();
    this.space.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
}
