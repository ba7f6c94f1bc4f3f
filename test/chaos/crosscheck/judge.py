"""Judges a round of faults by what its clients have seen and by what ZooKeeper's servers have logged.

It is written from docs/guarantees.md and shares nothing with the judge in Go. It prints a JSON object: "counts"; "violations", with the
numbers of their promises there; "unjudged", why it could not judge. It exits with 1 if a promise was broken, and 2 if it could not judge.

Times are nanoseconds of the clock that all processes of a machine share: histories are compared with each other without any allowance.
Servers log milliseconds of the wall clock. Each process has noted both clocks at its beginning and its end: by how much these notes
differ, and the millisecond that servers cut off, is the error that is allowed for between histories and logs.
"""
import argparse
import bisect
import collections
import itertools
import json
import pathlib
import re
import struct
import sys
import types
import urllib.parse
import zlib

CREATE, DELETE, SET, CREATE2, ERROR, MULTI, CONTAINER, DELETE_CONTAINER, TTL, CLOSE_SESSION = 1, 2, 5, 15, -1, 14, 19, 20, 21, -11
SWEEP = 21_000_000_000  # a claim that is over is ended so much later: clocks may be wrong, and sidecars look at times
PLACE = re.compile(r"_c_[^/]*-(lock-|__READ__|__WRIT__)\d+")
BEGINS = ("called", "asked", "invoked", "joining", "watching")
NEVER = float("inf")


class Record:
    """Reads jute, in which ZooKeeper stores its transactions: big-endian, with lengths of four bytes."""
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values if len(values) > 1 else values[0]

    def bytes(self):
        length = max(self.take("i"), 0)
        self.at += length
        return self.data[self.at - length:self.at]


def entries(path):
    """The entries of a log: behind a header of 16 bytes a checksum, a length, the entry and the letter B; zeros follow the last."""
    data = path.read_bytes()
    at = 16 if data[:4] == b"ZKLG" else len(data)
    while at + 12 <= len(data):
        checksum, length = struct.unpack_from(">qi", data, at)
        entry = data[at + 12:at + 12 + max(length, 0)]
        at += 13 + length
        if length <= 0 or data[at - 1:at] != b"B" or zlib.adler32(entry) != checksum:
            return
        yield entry


def committed(directories, since):
    """The entries behind a zxid that a majority has logged, with all before them in the same epoch, and whether any is missing."""
    logged, copies, last = {}, collections.Counter(), {}
    for directory in directories:
        found = [entry for path in directory.rglob("log.*") for entry in entries(path)]
        mine = {struct.unpack_from(">q", entry, 12)[0]: entry for entry in found}
        copies.update(zxid for zxid in mine if zxid > since)
        logged.update(mine)
    for zxid, count in copies.items():
        if 2 * count > len(directories):
            last[zxid >> 32] = max(zxid, last.get(zxid >> 32, 0))
    agreed = sorted(zxid for zxid in copies if zxid <= last.get(zxid >> 32, 0))
    return [logged[zxid] for zxid in agreed], len(agreed) != sum(end - max(since, epoch << 32) for epoch, end in last.items())


def changes(kind, record):
    """What a transaction does: verb, path, data, and the data's version or whether the node is ephemeral."""
    if kind == MULTI:
        parts = [(record.take("i"), record.bytes()) for _ in range(record.take("i"))]
        failed = any(part == ERROR for part, _ in parts)
        return [] if failed else [change for part, data in parts for change in changes(part, Record(data))]
    if kind in (CREATE, CREATE2, CONTAINER, TTL):
        path, data = record.bytes().decode(), record.bytes()
        for _ in range(max(record.take("i"), 0)):  # the ACL
            record.take("i"), record.bytes(), record.bytes()
        return [("create", path, data, kind in (CREATE, CREATE2) and record.take("?"))]
    if kind in (DELETE, DELETE_CONTAINER):
        return [("delete", record.bytes().decode(), b"", 0)]
    if kind == SET:
        return [("set", record.bytes().decode(), record.bytes(), record.take("i"))]
    return [("close", "", b"", 0)] if kind == CLOSE_SESSION else []


def replay(log, clock):
    """All lives of all nodes, by path: the zxids (made, removed) and times (at, until) of their two ends, and what was written."""
    nodes, alive, owned = collections.defaultdict(list), {}, collections.defaultdict(list)
    for entry in log:
        record = Record(entry)
        session, _, zxid, wall, kind = record.take("qiqqi")
        for verb, path, data, extra in changes(kind, record):
            if verb == "create":
                owner = re.search(rb'"owner":"([^"]*)"', data)
                alive[path] = types.SimpleNamespace(path=path, made=zxid, at=clock(wall), removed=NEVER, until=NEVER, writes=[],
                                                    owner=owner[1].decode() if owner else "")
                nodes[path].append(alive[path])
                owned[session] += [alive[path]] if extra else []
            elif verb == "set" and path in alive:
                alive[path].writes.append((zxid, clock(wall), extra, data.decode("latin-1")))
            for node in owned.pop(session, []) if verb == "close" else [alive.get(path)] if verb == "delete" else []:
                if node and alive.get(node.path) is node:
                    node.removed, node.until = zxid, clock(wall)
                    del alive[node.path]
    return nodes


class Op:
    """One operation of one caller: the event it began with, and those that followed, by kind."""
    def __init__(self, begin):
        self.begin, self.events, self.name = begin, [], f'{begin["client"]}/{begin["op"]}'
        self.client, self.sidecar = f'client/{begin["client"]}', f'sidecar/{begin.get("sidecar", 0)}'

    def all(self, kind):
        return [event for event in self.events if event["kind"] == kind]

    def at(self, kind):
        return next((event["at"] for event in self.events if event["kind"] == kind), NEVER)


class Judge:
    def __init__(self, events, directories, since):
        self.violations, self.counts, self.ops, self.faults, noted = [], collections.Counter(), {}, [], collections.defaultdict(list)
        for event in events:
            if event["kind"] in BEGINS:
                self.ops[event["client"], event["op"]] = Op(event)
            elif (event["client"], event.get("op")) in self.ops:
                self.ops[event["client"], event["op"]].events.append(event)
            else:
                noted[event["kind"]].append(event)
                self.strike(event["kind"], [event.get("nemesis"), event.get("target", "")], event["at"])
        walls = sorted(event["wall"] - event["at"] for event in noted["clocks"])
        offset, self.error = walls[len(walls) // 2], walls[-1] - walls[0] + 1_000_000
        self.settings, self.quiet = noted["began"][0]["settings"], noted["quiet"][0]["at"]
        self.recovered = all(event["outcome"] == "ok" for event in noted["tombstone"])
        self.killed = {event["target"]: event for event in noted["killed"]}
        self.exempted = {(event["lock"], event["token"]): event["at"] for event in reversed(noted["exempted"])}  # the first time
        self.slept = [(event["target"], event.get("from", event["at"]), event["at"]) for event in noted["slept"]]
        log, gaps = committed(directories, since)
        self.unjudged = "transactions are missing from the logs" if gaps or not log else ""
        self.nodes = replay(log, lambda wall: wall * 1_000_000 - offset)

    def strike(self, kind, what, at):
        if kind == "fault":
            self.faults.append([*what, at, NEVER])
        if kind == "heal":
            next(fault for fault in reversed(self.faults) if fault[:2] + fault[3:] == [*what, NEVER])[3] = at

    def judge(self):
        for op in self.ops.values():
            op.over = min(op.at("ended"), self.killed.get(op.client, {"at": NEVER})["at"])  # for its caller
            op.granted, op.token = next(((event["at"], event["token"]) for event in op.all("granted")), (NEVER, 0))
            op.belief = self.belief(op)
        calls = {kind: [op for op in self.ops.values() if op.begin["kind"] == kind] for kind in BEGINS}
        self.locks(calls["called"])
        self.sequences(calls["asked"])
        self.groups(calls["joining"], [op for op in calls["watching"] if "group" in op.begin])
        self.configuration(calls["invoked"], [op for op in calls["watching"] if "group" not in op.begin])

    def broken(self, promise, subject, text):
        self.violations.append({"promise": promise, "text": f"{subject} {text}"})

    def late(self, when, since, op, beside=0):
        """Whether something was too late, though no fault of the caller, of its sidecar or of a server stood in its way, nor a slow machine."""
        due = since + (patience := self.settings["patience"] + beside)
        for _, target, begin, end in self.faults:
            mine = target in ("", op.client, op.sidecar) or target.startswith("server/")
            due = max(due, end + patience) if mine and begin <= due else due
        return self.recovered and min(when, self.quiet) > due

    def path(self, root, *names):
        return "/".join([self.settings[root], *(urllib.parse.quote(name, safe="") for name in names)])

    def below(self, root):
        return [node for path, lives in self.nodes.items() if path.startswith(self.settings[root] + "/") for node in lives]

    def belief(self, op):
        """From when until when the caller was sure of its lock, unless it died, or could see that its machine slept; None if never."""
        if not (spans := [event for event in op.events if event["kind"] in ("believed", "told")]):
            return None
        asked = spans[0].get("from", spans[0]["at"])  # of what is believed, when it was known
        start = asked if spans[0]["kind"] == "believed" else spans[0]["at"]
        exempted = self.exempted.get((op.begin["lock"], op.token), NEVER)  # an operator does not wait for the end
        end = min(spans[-1]["to"], self.killed.get(op.client, {"from": NEVER})["from"], exempted, max(start, self.asleep(op, asked)))
        return (start, end) if end >= start else None

    def asleep(self, op, since):
        return min((start for sidecar, start, end in self.slept if sidecar == op.sidecar and end >= since), default=NEVER)

    def locks(self, calls):
        """Promises 1 to 5, and 12."""
        contenders, by_lock = collections.defaultdict(list), collections.defaultdict(list)
        for node in self.below("lockRoot"):
            directory, _, name = node.path.rpartition("/")
            if PLACE.fullmatch(name):
                contenders[directory].append(node)
                if node.until == NEVER:
                    self.broken("5", node.path, "is left behind")
        for places in contenders.values():
            writers = everybody = -NEVER, 0  # when all had gone that came before, or all of them that do not read, and at which zxid
            for place in sorted(places, key=lambda place: place.made):
                reads, end = "__READ__" in place.path, (place.until, place.removed)
                before = writers if reads else everybody
                place.turn, place.head = max(place.at, before[0]), max(place.made, before[1])
                everybody, writers = max(everybody, end), writers if reads else max(writers, end)
        for op in calls:
            by_lock[op.begin["lock"]].append(op)
        for lock, ops in by_lock.items():
            places = contenders[self.path("lockRoot", lock)]
            owners, tokens = {place.owner: place for place in places}, {place.made: place for place in places}
            for op in ops:
                self.place(op, f"{op.name}, lock {lock},", tokens.get(op.token) if op.token else owners.get(op.name))
            guarded = [(w[0], int(w[3])) for node in self.nodes.get(f'{self.settings["configRoot"]}/{lock}/guarded', ()) for w in node.writes if w[3]]
            members = [(token, node) for token in tokens for node in self.nodes.get(self.path("groupRoot", f"{lock}/guarded", str(token)), ())]
            for zxid, token in guarded + [(zxid, token) for token, node in members for zxid in (node.made, *(w[0] for w in node.writes))]:
                self.counts["guarded"] += 1
                if not (held := tokens.get(token)) or not held.head < zxid < held.removed:
                    self.broken("12", f"zxid {zxid:#x}", f"wrote under {lock} with token {token}, which did not hold it then")
            holds = sorted((op for op in ops if op.token), key=lambda op: op.granted)
            self.counts["grants"] += len(holds)
            self.exclusion(lock, sorted((op for op in holds if op.belief), key=lambda op: op.belief))
            self.growth(lock, holds)

    def place(self, op, who, place):
        """One caller's place: granted in its turn, believed in no longer than it is there, reported when it is over, and given up."""
        if op.token and (place is None or place.owner not in ("", op.name)):
            self.broken("3", who, f"was granted with token {op.token}, which is not that of its place")
        if place is None:
            return
        if op.token and place.turn > op.granted + self.error:
            self.broken("1", who, "was granted while another lease owned the lock")
        if op.belief and op.belief[1] > place.until + self.error:
            self.broken("2", who, f"was sure for {(op.belief[1] - place.until) / 1e6:.3f} ms after its place was gone")
        if self.late(min(op.granted, op.over), place.turn, op):
            self.broken("5", who, "was not granted though nobody was before it")
        stays = op.begin["rest"] + SWEEP if "rest" in op.begin else self.settings["sessionTimeout"] * 3 // 2
        if self.late(place.until, max(op.over, op.belief[1] if op.belief else 0), op, stays):
            self.broken("5", who, "gave up its place, which stayed for longer than a session lives")
        if op.token:
            if op.over == NEVER or self.late(op.over, min(place.until, self.asleep(op, op.granted)), op):
                self.broken("4", who, "was not told that its hold was over, or too late")
            for ended in op.all("ended")[:1]:
                unasked = op.at("releasing") == NEVER and not ended.get("byUser")
                if unasked and (ended["code"] == "OK" or ended["code"] == "Aborted" and not ended.get("reason")):
                    self.broken("4", who, "lost its hold and was told no reason")

    def exclusion(self, lock, sure):
        """Nobody is sure of a lock beside another whom it excludes, by the histories alone."""
        before = []
        for op in sure:
            for other in (before := [other for other in before if other.belief[1] > op.belief[0]]):
                if "read" not in (op.begin["mode"], other.begin["mode"]) or op.begin["mode"] != other.begin["mode"]:
                    both = (min(op.belief[1], other.belief[1]) - op.belief[0]) / 1e6
                    self.broken("2", f"{other.name} and {op.name}", f"were both sure of {lock} for {both:.3f} ms")
            before.append(op)

    def growth(self, lock, holds):
        """Tokens grow: that of a grant is larger than all that others had seen before it was asked for, or before it was still valid."""
        times, every = [op.granted for op in holds], [0, *itertools.accumulate((op.token for op in holds), max)]
        writing = [0, *itertools.accumulate((0 if op.begin["mode"] == "read" else op.token for op in holds), max)]
        for i, op in enumerate(holds):
            earlier = min(i, bisect.bisect_left(times, max(op.begin["at"], op.belief[0] if op.belief else 0)))
            if (writing if op.begin["mode"] == "read" else every)[earlier] >= op.token:
                self.broken("3", f"{op.name}, lock {lock},", f"was granted with token {op.token} after one as large or larger")

    def sequences(self, calls):
        """Promises 6 and 7."""
        ranges, counters = collections.defaultdict(list), {(node.path, node.made): node for node in self.below("sequenceRoot")}
        for op in calls:
            for got in op.all("got"):
                ranges[op.begin["sequence"], got["incarnation"]].append((got["first"], got["first"] + got["count"] - 1, got["at"], op))
        for (name, incarnation), taken in ranges.items():
            counter, before = counters.get((self.path("sequenceRoot", name), incarnation)), 0
            stored = [(int.from_bytes(data.encode("latin-1"), "big"), at) for _, at, _, data in counter.writes] if counter else []
            answers = sorted((at, last) for _, last, at, _ in taken)
            largest = [0, *itertools.accumulate((last for _, last in answers), max)]
            for first, last, at, op in sorted(taken, key=lambda numbers: numbers[:2]):
                self.counts["numbers"] += last - first + 1
                if first <= before:
                    self.broken("6", op.name, f"got {first} of {name}, which had been handed out")
                if not any(when <= at + self.error for _, when in stored[bisect.bisect_left(stored, (last, 0)):][:1]):
                    self.broken("6", op.name, f"got {last} of {name}, to which the ensemble had not counted")
                if op.begin["ordering"] == "strict" and first <= largest[bisect.bisect_left(answers, (op.begin["at"], 0))]:
                    self.broken("7", op.name, f"got {first} of {name}, though a larger number had been handed out before it asked")
                before = max(before, last)

    def groups(self, joins, watches):
        """Promises 8 and 9."""
        depth = self.settings["groupRoot"].count("/") + 2
        members = {(node.path, node.made): node for node in self.below("groupRoot") if node.path.count("/") == depth}
        for node in members.values():
            if node.until == NEVER:
                self.broken("8", node.path, "is left behind")
        for op in joins:
            for joined in op.all("joined"):
                node = members.get((self.path("groupRoot", op.begin["group"], op.begin["member"]), joined["incarnation"]))
                if node is None or self.late(node.until, op.over, op):
                    self.broken("8", op.name, "joined in vain" if node is None else "has left, and its member stayed")
        for op in watches:
            group = self.path("groupRoot", op.begin["group"]) + "/"
            self.views(op, op.all("seen"), {key: node for key, node in members.items() if node.path.startswith(group)})

    def views(self, op, views, members):
        """One watch of a group: nobody is shown as gone who is there, and no view that claims to be up to date is wrong for long."""
        before, group = set(), op.begin["group"]
        for view, end in zip(views, [view["at"] for view in views[1:]] + [min(op.over, self.quiet)]):
            shown = {(self.path("groupRoot", group, member["name"]), member["incarnation"]) for member in view.get("members", ())}
            for key, node in members.items():
                if key in before and key not in shown and node.until > view["at"] + self.error:
                    self.broken("9", op.name, f"was told that {node.path} was gone, which was present")
                wrong, right = (node.until, end) if key in shown else (node.at, min(end, node.until))
                if not view.get("stale") and self.late(right, max(view["at"], wrong), op):
                    self.broken("9", op.name, f"was left with a view that was wrong about {node.path}")
            before = shown

    def configuration(self, calls, watches):
        """Promises 10 and 11."""
        self.keys = collections.defaultdict(lambda: [(0, -NEVER, 0, None)])  # zxid, time, version, value of each state; no value: no key
        for node in self.below("configRoot"):
            gone = [(node.removed, node.until, 0, None)] if node.writes and node.until < NEVER else []
            self.keys[node.path[len(self.settings["configRoot"]) + 1:]] += node.writes + gone
        answers = sorted(((op.at("returned"), op, op.all("returned")[0]) for op in calls if op.all("returned")), key=lambda call: call[0])
        revisions = (max(0 if step["verb"] == "look" else step.get("revision", 0) for step in answer["steps"]) for _, _, answer in answers)
        times, known = [at for at, _, _ in answers], [0, *itertools.accumulate(revisions, max)]
        for _, op, answer in answers:
            self.call(op, answer, known[bisect.bisect_left(times, op.begin["at"])])
        for op in watches:
            self.watch(op)

    def states(self, told, at):
        """Which of a key's states, by index, may be what a caller was told of it by that time."""
        want = None if told.get("missing") or told.get("deleted") else (told.get("revision"), told.get("version"), told.get("value", ""))
        return [i for i, (zxid, when, version, value) in enumerate(self.keys[told["key"]])
                if when <= at + self.error and (value is None if want is None else (zxid, version, value) == want)]

    def call(self, op, answer, known):
        """One call: done all or nothing and as it was asked, or read as it was at some instant of the call."""
        written, done = [], answer["outcome"] == "ok"
        for step in answer["steps"]:
            history, wrong = self.keys[step["key"]], False
            if step["verb"] == "put":  # values are written once
                found = [i for i, state in enumerate(history) if state[3] == step["value"]]
                written.append([history[i][0] for i in found])
                told = [(step.get("revision"), step.get("version"))] if done else []
                wrong = answer["outcome"] != "unknown" and [history[i][:3:2] for i in found] != told
                wrong = wrong or any((history[i - 1][2] or -1) != step["demand"] for i in found if "demand" in step)
            elif done and step["verb"] == "delete":
                times = [at for _, at, _, value in history if value is None]
                wrong = not any(op.begin["at"] - self.error <= at <= answer["at"] + self.error for at in times)
            elif done:
                nexts = [history[i + 1][0] if i + 1 < len(history) else NEVER for i in self.states(step, answer["at"])]
                wrong = max(nexts, default=0) <= (known if step["verb"] == "get" else 0)
            if wrong:
                self.broken("10", op.name, f'was told that {step["verb"]} of {step["key"]} was {answer["outcome"]}, which the logs refute')
        if any(each != written[0] for each in written):
            self.broken("10", op.name, "wrote only a part of what it wrote at once")

    def watch(self, op):
        """One watch of the configuration: it shows what was stored, never goes back, and ends with what is stored."""
        told, stale, synced = {}, False, None
        for event in op.events:
            stale, synced = event["kind"] == "lagging" or stale and event["kind"] != "fresh", event["at"] if event["kind"] == "synced" else synced
            for change in event.get("changes", ()):
                states = [i for i in self.states(change, event["at"]) if i >= told.get(change["key"], [0])[0]]
                if not states:
                    self.broken("11", op.name, f'was shown a state of {change["key"]} that was not there, or no more')
                told[change["key"]] = states or [0]
        for key, history in list(self.keys.items()) if synced and not stale else []:
            if key in op.begin.get("keys", ()) or key.startswith(op.begin.get("prefix", "//") + "/"):
                shown = told.get(key, self.states({"key": key, "missing": True}, synced))
                if any(self.late(op.over, max(at, synced), op) for _, at, _, _ in history[shown[-1] + 1:]):
                    self.broken("11", op.name, f"was left with an old state of {key}")


def read(directory):
    """All events, in the order of their times. What follows the last end of a line a killed process did not finish."""
    lines = [line for path in sorted(directory.glob("*.history")) for line in path.read_text().split("\n")[:-1]]
    return sorted(map(json.loads, lines), key=lambda event: event["at"])


def main():
    parser = argparse.ArgumentParser(description="Judge a round of faults by its histories and the ensemble's transaction logs.")
    parser.add_argument("--since", type=int, default=0, metavar="ZXID", help="leave out the transactions up to this one")
    parser.add_argument("histories", type=pathlib.Path, help="the directory of the *.history files")
    parser.add_argument("logs", type=pathlib.Path, nargs="+", help="the directories of transaction logs, one for each server")
    options = parser.parse_args()
    judge = Judge(read(options.histories), options.logs, options.since)
    judge.unjudged or judge.judge()
    print(json.dumps({"counts": judge.counts, "violations": judge.violations, "unjudged": judge.unjudged}, indent=1))
    return 2 if judge.unjudged else 1 if judge.violations else 0


if __name__ == "__main__":
    sys.exit(main())
