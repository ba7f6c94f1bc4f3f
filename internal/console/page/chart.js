// A small picture of the last hour: one bar a span, red where there was no contact.
import { clock, element } from "./words.js";

const high = 32; // units, in which the tallest bar is drawn

function drawn(name, attributes, ...content) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// chart draws numbers, of which those below 0 are not known. Those that are bad in themselves are red, too.
export function chart(numbers, { span, away }, said, bad = false) {
  const most = Math.max(0, ...numbers);
  const bar = (value, index) => (value > 0 ? `M${index} ${high}v${-Math.max(1, (value / most) * high).toFixed(1)}h1V${high}z` : "");
  const line = (value, index) => (value < 0 ? "" : `M${index} ${high}h1`);
  const gone = (is, index) => (is ? `M${index} 0h1V${high}h-1z` : "");
  const [peak, when, lost] = described(numbers, span, away, said);
  return element("figure", {},
    drawn("svg", { viewBox: `0 0 ${numbers.length} ${high + 1}`, preserveAspectRatio: "none", role: "img", "aria-label": `The last hour: ${[peak + when, lost].filter(Boolean).join("; ")}` },
      drawn("path", { class: "away", d: away.map(gone).join("") }),
      drawn("path", { class: "known", d: numbers.map(line).join("") }),
      drawn("path", { class: bad ? "bar bad" : "bar", d: numbers.map(bar).join("") })),
    element("figcaption", { class: "quiet" }, element("span", { class: "end" }, clock(before(numbers.length, span))),
      element("span", {}, peak, element("span", { class: "at" }, when)), element("span", { class: "end" }, "now"), element("span", { class: "lost" }, lost)));
}

const before = (spans, span) => new Date(Date.now() - spans * span * 1000);

// described says three things, each of which stays on a line: the most, when that was, and for how long there was no contact.
function described(numbers, span, away, said) {
  const most = Math.max(...numbers);
  const lost = away.filter(Boolean).length;
  return [
    most < 0 ? "not known" : most === 0 ? "none seen" : `at most ${said(most)}`,
    most > 0 ? `, at ${clock(before(numbers.length - 1 - numbers.lastIndexOf(most), span))}` : "",
    lost > 0 ? `no contact: ${Math.ceil((lost * span) / 60)} min` : "",
  ];
}
