// The address of what is shown: #/locks/orders?search=ord. The browser keeps it in its history, and a person can pass it on.

// where is what the address says: the kind's id, the name of one of it, and what is searched. What is missing is undefined or empty.
export function where() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [, id, name] = path.split("/");
  return { id, name: name === undefined ? undefined : decoded(name), search: new URLSearchParams(query).get("search") ?? "" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// at is the address of a kind, of one of it, or of what is found there.
export const at = (id, name, search) =>
  `#/${id}${name === undefined ? "" : `/${encodeURIComponent(name)}`}${search ? `?${new URLSearchParams({ search })}` : ""}`;

// go shows something else, as a link would.
export function go(id, name, search = "") {
  location.hash = at(id, name, search);
}

// note says in the address what is searched among this kind. A letter is no step that Back would undo.
export function note(id, search) {
  history.replaceState(null, "", at(id, where().name, search));
}
