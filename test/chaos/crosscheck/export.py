"""Writes the histories of a round as one, in the order of their times, as JSON lines and as EDN.

    python3 export.py HISTORIES

HISTORIES is the directory of the *.history files; history.jsonl and history.edn are written into it. docs/histories.md has the fields.
"""
import json
import pathlib
import sys

CALLS = {"called": "acquire", "joining": "join", "asked": "next", "invoked": "txn"}
ANSWERS = {"granted": "ok", "joined": "ok", "got": "ok", "failed": "info"}
OUTCOMES = {"ok": "ok", "refused": "fail", "unknown": "info"}
SECOND = {"acquire": "release", "join": "leave"}  # what ends what the first call has begun


def read(directory):
    """All events, in the order of their times. What follows the last end of a line a killed process did not finish."""
    lines = [line for path in sorted(directory.glob("*.history")) for line in path.read_text().split("\n")[:-1]]
    return sorted(map(json.loads, lines), key=lambda event: event["at"])


class Process:
    """One operation. Each is a process of its own, so that none goes on after a call whose outcome is not known."""

    def __init__(self, number, call):
        self.number, self.call, self.open = number, call, True

    def step(self, event):
        """The type and the function of what an event tells, or nothing if it neither begins nor ends a call."""
        kind = event["kind"]
        if kind == "releasing" and self.call in SECOND and not self.open:
            self.call, self.open = SECOND[self.call], True
            return "invoke", self.call
        if not self.open or kind not in ("ended", "returned", *ANSWERS):
            return None
        self.open = False
        if kind == "ended":
            if self.call in SECOND:  # it was never granted
                return "fail", self.call
            return "ok" if event.get("code") == "OK" else "info", self.call
        return OUTCOMES[event["outcome"]] if kind == "returned" else ANSWERS[kind], self.call


def operations(events):
    """What other checkers read: invocations with their completions, and everything else as what a process without a number has seen."""
    processes = {}
    for index, event in enumerate(events):
        key, step = (event["client"], event.get("op")), None
        if event["kind"] in CALLS:
            processes[key] = Process(len(processes), CALLS[event["kind"]])
            step = "invoke", processes[key].call
        elif key in processes:
            step = processes[key].step(event)
        kind, function = step or ("info", event["kind"])
        process = processes[key].number if step else "observer" if event.get("op") else "nemesis"
        yield {"index": index, "time": event["at"], "process": process, "type": kind, "f": function, "value": event}


def edn(value, key=""):
    """A value in EDN; names are keywords."""
    if isinstance(value, dict):
        return "{" + ", ".join(f":{name} {edn(inner, name)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(map(edn, value)) + "]"
    if isinstance(value, str) and key in ("type", "f", "process", "kind", "mode", "verb", "outcome", "ordering"):
        return ":" + value
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)


def export(directory):
    with open(directory / "history.jsonl", "w", encoding="utf-8") as lines, open(directory / "history.edn", "w", encoding="utf-8") as maps:
        for operation in operations(read(directory)):
            print(json.dumps(operation), file=lines)
            print(edn(operation), file=maps)


if __name__ == "__main__":
    export(pathlib.Path(sys.argv[1]))
