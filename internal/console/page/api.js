// Calls of the sidecar's API, as the Connect protocol has them.

const kept = "sidekeeper-token";

// The token stands behind the # of the address, which browsers send to nobody; it stays in this tab alone.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(kept, given);
  history.replaceState(null, "", location.pathname);
}
export const hasToken = () => sessionStorage.getItem(kept) !== null;

function post(path, type, body, signal) {
  const headers = { "Content-Type": type, Authorization: `Bearer ${sessionStorage.getItem(kept)}` };
  return fetch(path, { method: "POST", headers, body, signal });
}

// A Refusal is an answer that is no success: why, in the sidecar's words.
export class Refusal extends Error {}

async function refusal(response) {
  const text = await response.text();
  try {
    return new Refusal(JSON.parse(text).message ?? text);
  } catch {
    return new Refusal(text.trim() || `HTTP status ${response.status}`);
  }
}

// own asks the console itself.
export async function own(path) {
  const response = await post(path, "application/json", "{}");
  if (!response.ok) throw await refusal(response);
  return response.json();
}

export async function call(method, request) {
  const response = await post(`/api/${method}`, "application/json", JSON.stringify(request));
  if (!response.ok) throw await refusal(response);
  return response.json();
}

// listed gets all pages of a listing, and tells what it has of it after each.
export async function listed(method, request, field, tell) {
  const all = [];
  let pageToken = "";
  do {
    const page = await call(method, { ...request, pageSize: 1000, pageToken });
    for (const one of page[field] ?? []) all.push(one);
    pageToken = page.nextPageToken ?? "";
    tell?.(all);
  } while (pageToken !== "");
  return all;
}

const shortest = 2000; // milliseconds between two questions
export const patience = 10; // times as long as an answer took it is not asked for again
export const longest = 10000; // milliseconds until what was not answered is asked again

// again does a task again and again for as long as it is wanted, but not sooner than that. While the page cannot be seen, it does nothing. The
// task says false if it was not answered.
export async function again(wanted, task, soonest = shortest) {
  while (wanted()) {
    const begun = performance.now();
    const answered = document.visibilityState === "visible" && (await task()) !== false;
    const rest = patience * (performance.now() - begun);
    await new Promise((resolve) => { setTimeout(resolve, Math.max(soonest, answered ? rest : Math.min(longest, rest))); });
  }
}

// watch tells each message of a stream until it ends, which it says by an error, or by returning.
export async function watch(method, request, tell, signal) {
  const text = new TextEncoder().encode(JSON.stringify(request));
  const body = new Uint8Array(5 + text.length);
  new DataView(body.buffer).setUint32(1, text.length);
  body.set(text, 5);
  const response = await post(`/api/${method}`, "application/connect+json", body, signal);
  if (!response.ok) throw await refusal(response);
  for await (const [flags, message] of messages(response.body.getReader())) {
    if ((flags & 2) === 0) tell(message);
    else if (message.error) throw new Refusal(message.error.message ?? message.error.code);
  }
}

async function* messages(reader) {
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(rest.length + value.length);
    joined.set(rest);
    joined.set(value, rest.length);
    rest = joined;
    while (rest.length >= 5) {
      const end = 5 + new DataView(rest.buffer, rest.byteOffset).getUint32(1);
      if (rest.length < end) break;
      yield [rest[0], JSON.parse(new TextDecoder().decode(rest.subarray(5, end)))];
      rest = rest.subarray(end);
    }
  }
}
