"""Judges rounds that keep all promises, and rounds in which one violation of each kind has been planted."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

FOLDER = pathlib.Path(__file__).parent
BOOT = 1_700_000_000_000  # what the wall clock showed, in milliseconds, when the clock of the histories was 0
SERVERS = 3
LOCK, SEQUENCE, GROUP, CONFIG, GUARDED = "/l/a%2Fb", "/s/n", "/g/w", "/c/k", "/c/a/b/guarded"
MEMBER = "/g/a%2Fb%2Fguarded/1"  # under the first token
FIRST, SECOND = LOCK + "/_c_1-lock-0000000000", LOCK + "/_c_2-lock-0000000001"


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


def create(path, data="", ephemeral=True):
    acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
    return 1, text(path) + text(data) + acl + struct.pack(">?i", ephemeral, 1)


def delete(path):
    return 2, text(path)


def write(path, data, version):
    return 5, text(path) + text(data) + struct.pack(">i", version)


def multi(*parts):
    return 14, struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", kind) + text(body) for kind, body in parts)


CLOSE = -11, struct.pack(">i", 0)
FAILED = -1, struct.pack(">i", -101)


class Round:
    """A round that keeps all promises. Times are milliseconds; zxids count from 1, in the order of the transactions."""

    def __init__(self):
        self.events, self.log, self.alone, self.skipped = [], [], [], 0
        self.see(0, 0, "clocks", 0, wall=BOOT * 1_000_000)
        roots = {"lockRoot": "/l", "sequenceRoot": "/s", "groupRoot": "/g", "configRoot": "/c"}
        self.see(0, 0, "began", 1, settings={**roots, "patience": 7 * 10**9, "sessionTimeout": 2 * 10**9})
        self.lock()
        self.sequence()
        self.group()
        self.configuration()
        self.see(0, 0, "quiet", 60_000)

    def see(self, client, op, kind, at, **fields):
        event = {"at": at * 1_000_000, "client": client, "kind": kind, **({"op": op} if op else {}), **fields}
        for name in ("from", "to"):
            if name in event:
                event[name] *= 1_000_000
        self.events.append(event)

    def do(self, at, change, session=9):
        self.log.append([at, session, *change])
        return len(self.log)

    def lock(self):
        """One holder after the other: the first releases; the second is waited for, counts on Check, and loses its session."""
        first = self.do(1010, create(FIRST, '{"owner":"1/1"}'), 1)
        second = self.do(1110, create(SECOND, '{"owner":"2/1"}'), 2)
        self.do(1200, multi(create(GUARDED, "", False), write(GUARDED, str(first), 1)))
        self.do(1519, create(MEMBER, "{}"), 8)
        self.do(1520, delete(FIRST), 1)
        self.do(1600, write(GUARDED, str(second), 2))
        self.do(3100, CLOSE, 2)
        self.do(3200, delete(MEMBER), 8)
        self.see(1, 1, "called", 1000, lock="a/b", mode="exclusive", sidecar=1)
        self.see(1, 1, "granted", 1020, token=first)
        self.see(1, 1, "believed", 1400, **{"from": 1021, "to": 1399})
        self.see(1, 1, "releasing", 1510)
        self.see(1, 1, "ended", 1530, code="OK")
        self.see(2, 1, "called", 1100, lock="a/b", mode="exclusive", sidecar=2)
        self.see(2, 1, "granted", 1540, token=second)
        self.see(2, 1, "told", 1545, to=3000)
        self.see(2, 1, "told", 2900, to=2900)
        self.see(2, 1, "ended", 2901, code="Aborted", reason="LEASE_LOST")
        for op in (2, 3):  # two readers, who share
            token = self.do(4000 + op, create(f"/l/r/_c_{op}-__READ__000000000{op}", f'{{"owner":"3/{op}"}}'), 3)
            self.do(5000 + op, delete(f"/l/r/_c_{op}-__READ__000000000{op}"), 3)
            self.see(3, op, "called", 3999, lock="r", mode="read")
            self.see(3, op, "granted", 4010, token=token)
            self.see(3, op, "believed", 4990, **{"from": 4020, "to": 4980})
            self.see(3, op, "releasing", 4991)
            self.see(3, op, "ended", 5010, code="OK")

    def sequence(self):
        made = self.do(6000, multi(create(SEQUENCE, bytes(8), False), write(SEQUENCE, struct.pack(">q", 0), 1)))
        for client, at, first, count, ordering in ((1, 6100, 1, 3, "relaxed"), (2, 6200, 4, 1, "strict")):
            self.do(at + 5, write(SEQUENCE, struct.pack(">q", first + count - 1), client + 1))
            self.see(client, 10, "asked", at, sequence="n", count=count, ordering=ordering)
            self.see(client, 10, "got", at + 10, first=first, count=count, incarnation=made)

    def group(self):
        made = self.do(7000, create(GROUP + "/m", '{"owner":"1/20"}'), 20)
        self.do(17000, delete(GROUP + "/m"), 20)
        self.see(1, 20, "joining", 6990, group="w", member="m", sidecar=1)
        self.see(1, 20, "joined", 7010, incarnation=made)
        self.see(1, 20, "releasing", 16990)
        self.see(1, 20, "ended", 17010, code="OK", byUser=True)
        self.see(2, 20, "watching", 6000, group="w", sidecar=2)
        self.see(2, 20, "seen", 6010, members=[])
        self.see(2, 20, "seen", 7020, members=[{"name": "m", "incarnation": made}], joined=[{"name": "m", "incarnation": made}])
        self.see(2, 20, "seen", 17020, members=[], left=[{"name": "m", "incarnation": made}])
        self.see(2, 20, "ended", 40000, code="Canceled", byUser=True)

    def configuration(self):
        both = self.do(20010, multi(create(CONFIG + "/0", "", False), write(CONFIG + "/0", "x", 1), create(CONFIG + "/1", "", False),
                                    write(CONFIG + "/1", "x", 1)))
        newer = self.do(20110, write(CONFIG + "/0", "y", 2))
        self.do(20115, multi(FAILED, FAILED))
        self.do(20310, delete(CONFIG + "/1"))
        put = {"verb": "put", "value": "x", "key": "k/0", "version": 1, "revision": both}
        self.call(30, 20000, "ok", put, {**put, "key": "k/1"})
        self.call(31, 20100, "ok", {**put, "value": "y", "version": 2, "revision": newer, "demand": 1})
        self.call(32, 20112, "refused", {"verb": "put", "value": "z", "key": "k/0", "demand": 1})
        self.call(33, 20200, "ok", {"verb": "get", "key": "k/0", "value": "y", "version": 2, "revision": newer})
        self.call(34, 20300, "ok", {"verb": "delete", "key": "k/1"})
        self.call(35, 20400, "ok", {"verb": "get", "key": "k/1", "missing": True})
        self.see(2, 30, "watching", 20050, prefix="k", sidecar=2)
        self.see(2, 30, "state", 20060, changes=[{"key": f"k/{i}", "value": "x", "version": 1, "revision": both} for i in (0, 1)])
        self.see(2, 30, "synced", 20061)
        self.see(2, 30, "changed", 20120, changes=[{"key": "k/0", "value": "y", "version": 2, "revision": newer}])
        self.see(2, 30, "changed", 20320, changes=[{"key": "k/1", "deleted": True}])
        self.see(2, 30, "ended", 40000, code="Canceled", byUser=True)

    def call(self, op, at, outcome, *steps):
        self.see(1, op, "invoked", at, steps=[{"key": step["key"], "verb": step["verb"]} for step in steps], sidecar=1)
        self.see(1, op, "returned", at + 20, outcome=outcome, steps=list(steps))

    def event(self, client, op, kind, which=0):
        return [event for event in self.events if (event["client"], event.get("op"), event["kind"]) == (client, op, kind)][which]

    def drop(self, client, op, kind, which=0):
        self.events.remove(self.event(client, op, kind, which))

    def transaction(self, body, which=0):
        """The transaction, as [time, session, type, body], that does this."""
        return [entry for entry in self.log if entry[2:] == list(body)][which]

    def write(self, folder):
        """Writes the histories, one file a client, and the servers' logs: one server has not logged the last transaction."""
        for client in {event["client"] for event in self.events}:
            lines = [json.dumps(event) + "\n" for event in self.events if event["client"] == client]
            (folder / f"{client:05}.history").write_text("".join(lines) + '{"at":1,"cli')
        packed = [pack(zxid, *entry) for zxid, entry in enumerate(self.log, 1) if zxid != self.skipped]
        alone = [pack(len(self.log) + 1, at, 20, *change) for change, at in self.alone]
        for server, logged in enumerate((packed + alone, packed, packed[:-1])):
            (folder / str(server) / "version-2").mkdir(parents=True)
            (folder / str(server) / "version-2" / "log.1").write_bytes(b"ZKLG" + bytes(12) + b"".join(logged) + bytes(64))


def pack(zxid, at, session, kind, body):
    """An entry of a log; behind the transaction stands a digest."""
    entry = struct.pack(">qiqqi", session, 1, zxid, BOOT + at, kind) + body + b"digest"
    return struct.pack(">qi", zlib.adler32(entry), len(entry)) + entry + b"B"


# What is planted, the promise that it breaks, and words of what is then said.
def two_are_sure(r):
    r.event(1, 1, "believed")["to"] = r.event(1, 1, "releasing")["at"] = 1_560_000_000
    r.transaction(delete(FIRST))[0] = 1539


def writer_beside_reader(r):
    r.event(3, 3, "called")["mode"] = "write"


def sure_without_place(r):
    r.event(1, 1, "believed")["to"] = 1_525_000_000


def granted_before_turn(r):
    r.event(2, 1, "granted")["at"] = 1_510_000_000


def foreign_token(r):
    r.event(1, 1, "granted")["token"] = 777


def smaller_token(r):
    r.event(2, 1, "called")["at"] = 1_535_000_000
    one, two = r.event(1, 1, "granted"), r.event(2, 1, "granted")
    one["token"], two["token"] = two["token"], one["token"]


def end_never_told(r):
    r.drop(2, 1, "ended")


def end_told_late(r):
    r.event(2, 1, "ended")["at"] = 11_000_000_000


def end_after_sleep_told_late(r):
    r.see(0, 0, "slept", 1600, target="sidecar/2")
    r.event(2, 1, "ended")["at"] = 9_000_000_000
    r.transaction(CLOSE)[0] = 8999


def no_reason(r):
    del r.event(2, 1, "ended")["reason"]


def waiter_never_granted(r):
    for kind in ("granted", "told", "told"):
        r.drop(2, 1, kind)
    r.event(2, 1, "ended").update(at=9_000_000_000, code="Canceled", byUser=True)
    r.transaction(CLOSE)[0] = 9000


def place_stays(r):
    r.transaction(CLOSE)[0] = 14_000


def place_left_behind(r):
    r.transaction(CLOSE)[1] = 77


def guarded_too_early(r):
    swap(r, delete(FIRST), write(GUARDED, "2", 2))


def guarded_too_late(r):
    swap(r, write(GUARDED, "2", 2), CLOSE)


def joined_too_late(r):
    swap(r, create(MEMBER, "{}"), delete(FIRST))


def swap(r, one, other):
    """Has one transaction follow the other that follows it."""
    at = r.log.index(r.transaction(one))
    assert r.log[at + 1] is r.transaction(other)
    r.log[at][0], r.log[at + 1][0] = r.log[at + 1][0], r.log[at][0]
    r.log[at:at + 2] = reversed(r.log[at:at + 2])


def number_twice(r):
    r.event(2, 10, "asked")["ordering"] = "relaxed"
    r.event(2, 10, "got")["first"] = 3


def number_not_counted(r):
    r.event(2, 10, "got")["count"] = 2


def strict_number_too_small(r):
    r.event(1, 10, "got")["first"] = 4
    r.event(2, 10, "got")["first"] = 1
    r.transaction(write(SEQUENCE, struct.pack(">q", 3), 2))[3] = write(SEQUENCE, struct.pack(">q", 6), 2)[1]


def member_in_vain(r):
    r.event(1, 20, "joined")["incarnation"] = 777


def member_stays(r):
    r.event(1, 20, "ended")["at"] = 8_000_000_000


def member_left_behind(r):
    r.log.remove(r.transaction(delete(GROUP + "/m")))
    r.drop(2, 20, "seen", 2)
    r.events[:] = [event for event in r.events if event.get("op") not in (30, 31, 32, 33, 34, 35)]


def gone_though_present(r):
    r.event(2, 20, "seen", 2)["at"] = 16_500_000_000


def view_stays_wrong(r):
    r.drop(2, 20, "seen", 2)


def member_not_shown(r):
    r.drop(2, 20, "seen", 1)


def put_not_there(r):
    r.event(1, 31, "returned")["steps"][0]["revision"] += 1


def refused_but_done(r):
    r.event(1, 31, "returned")["outcome"] = "refused"


def precondition_not_met(r):
    r.event(1, 31, "returned")["steps"][0]["demand"] = -1


def delete_not_done(r):
    r.event(1, 34, "returned")["steps"][0]["key"] = "k/7"


def half_a_commit(r):
    r.event(1, 30, "returned")["outcome"] = "unknown"
    r.event(1, 30, "returned")["steps"][1]["key"] = "k/7"


def stale_read(r):
    r.event(1, 33, "returned")["steps"][0].update(value="x", version=1, revision=r.event(1, 30, "returned")["steps"][0]["revision"])


def read_of_nothing(r):
    r.event(1, 33, "returned")["steps"][0].update(verb="look", value="never")


def shown_what_never_was(r):
    r.event(2, 30, "changed")["changes"][0]["value"] = "never"


def shown_going_back(r):
    r.see(2, 30, "changed", 20130, changes=[dict(change) for change in r.event(2, 30, "state")["changes"][:1]])
    r.see(2, 30, "changed", 20140, changes=[dict(change) for change in r.event(2, 30, "changed")["changes"]])


def left_with_old_state(r):
    r.drop(2, 30, "changed", 1)


PLANTED = [
    (two_are_sure, "2", "both sure"), (writer_beside_reader, "2", "both sure"), (sure_without_place, "2", "its place was gone"),
    (granted_before_turn, "1", "another lease"), (foreign_token, "3", "not that of its place"), (smaller_token, "3", "as large or larger"),
    (end_never_told, "4", "hold was over"), (end_told_late, "4", "hold was over"), (end_after_sleep_told_late, "4", "hold was over"),
    (no_reason, "4", "no reason"), (waiter_never_granted, "5", "nobody was before it"), (place_stays, "5", "stayed for longer"),
    (place_left_behind, "5", "left behind"), (guarded_too_early, "12", "did not hold it"), (guarded_too_late, "12", "did not hold it"),
    (joined_too_late, "12", "did not hold it"),
    (number_twice, "6", "handed out"), (number_not_counted, "6", "not counted"),
    (strict_number_too_small, "7", "a larger number"), (member_in_vain, "8", "in vain"), (member_stays, "8", "its member stayed"),
    (member_left_behind, "8", "left behind"), (gone_though_present, "9", "which was present"), (view_stays_wrong, "9", "wrong about"),
    (member_not_shown, "9", "wrong about"), (put_not_there, "10", "refute"), (refused_but_done, "10", "refute"),
    (precondition_not_met, "10", "refute"), (delete_not_done, "10", "refute"), (half_a_commit, "10", "only a part"),
    (stale_read, "10", "refute"), (read_of_nothing, "10", "refute"), (shown_what_never_was, "11", "not there, or no more"),
    (shown_going_back, "11", "not there, or no more"), (left_with_old_state, "11", "old state"),
]


def judged(plant, source):
    """What a judge with this source says of a round in which something was planted: violations, or why it cannot tell."""
    planted = Round()
    plant(planted)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        planted.write(folder)
        module = {"__name__": "judge"}
        exec(source, module)
        judge = module["Judge"](module["read"](folder), [folder / str(server) for server in range(SERVERS)], 0)
        if not judge.unjudged:
            judge.judge()
        return judge.unjudged or [f'{violation["promise"]} {violation["text"]}' for violation in judge.violations]


def found(plant, promise, words, source):
    """Whether the planted violation is said to break its promise, in these words."""
    return any(said.startswith(promise + " ") and words in said for said in judged(plant, source))


class JudgeTest(unittest.TestCase):
    source = compile((FOLDER / "judge.py").read_text(), "judge.py", "exec")

    def test_a_round_that_keeps_all_promises_shows_no_violation(self):
        self.assertEqual(judged(lambda r: None, self.source), [])

    def test_each_planted_violation_is_found(self):
        for plant, promise, words in PLANTED:
            with self.subTest(plant.__name__):
                self.assertTrue(found(plant, promise, words, self.source), judged(plant, self.source))

    def test_without_any_one_check_a_planted_violation_is_missed(self):
        """So each check is needed, and each plant shows what it is meant to."""
        check = "self.broken("
        parts = (FOLDER / "judge.py").read_text().split(check)
        for i in range(1, len(parts)):
            without = compile(check.join(parts[:i]) + "(" + check.join(parts[i:]), "judge.py", "exec")
            missed = any(not found(plant, promise, words, without) for plant, promise, words in PLANTED)
            self.assertTrue(missed, f"nothing needs {check}{parts[i][:60]}")

    def test_what_the_document_exempts_is_no_violation(self):
        def exempted(r):
            two_are_sure(r)
            r.see(0, 0, "exempted", 1530, lock="a/b", token=r.event(1, 1, "granted")["token"])

        def exempted_twice(r):
            exempted(r)
            r.see(0, 0, "exempted", 1900, lock="a/b", token=r.event(1, 1, "granted")["token"])

        def slept(r):
            two_are_sure(r)
            r.see(0, 0, "slept", 1530, target="sidecar/1")

        def asleep_when_answered(r):
            r.event(2, 1, "told")["from"] = 1_541_000_000
            r.see(0, 0, "slept", 1543, target="sidecar/2", **{"from": 1542})
            r.transaction(CLOSE)[0] = 2000

        def killed(r):
            two_are_sure(r)
            r.drop(1, 20, "joined")
            r.see(0, 0, "killed", 1531, target="client/1", **{"from": 1530})

        def away(r):
            end_told_late(r)
            r.see(0, 0, "fault", 2000, nemesis="N", target="client/2")
            r.see(0, 0, "heal", 5000, nemesis="N", target="client/2")

        def expires(r):
            r.transaction(CLOSE)[0] = 10_000

        def slow_to_the_end(r):
            place_stays(r)
            r.see(0, 0, "tombstone", 59_000, outcome="unknown")

        for plant in (exempted, exempted_twice, slept, asleep_when_answered, killed, away, expires, slow_to_the_end):
            with self.subTest(plant.__name__):
                self.assertEqual(judged(plant, self.source), [])

    def test_a_watch_may_be_told_of_a_deletion_after_the_next(self):
        def lagging(r):
            again = r.do(20330, multi(create(CONFIG + "/1", "", False), write(CONFIG + "/1", "w", 1)))
            r.do(20340, delete(CONFIG + "/1"))
            r.event(2, 30, "changed", 1)["at"] = 20_350_000_000
            r.see(2, 30, "changed", 20360, changes=[{"key": "k/1", "value": "w", "version": 1, "revision": again}])
            r.see(2, 30, "changed", 20370, changes=[{"key": "k/1", "deleted": True}])

        self.assertEqual(judged(lagging, self.source), [])

    def test_a_fault_of_another_client_excuses_nothing(self):
        def away(r):
            end_told_late(r)
            r.see(0, 0, "fault", 2000, nemesis="N", target="client/1")

        self.assertTrue(found(away, "4", "hold was over", self.source))

    def test_what_a_minority_has_logged_did_not_happen(self):
        def alone(r):
            r.alone = [(delete(GROUP + "/m"), 8000)]

        self.assertEqual(judged(alone, self.source), [])

    def test_logs_with_a_gap_are_not_judged(self):
        def gap(r):
            r.skipped = 5

        self.assertEqual(judged(gap, self.source), "transactions are missing from the logs")

    def test_the_program_says_what_it_found(self):
        for plant, code, promises in ((lambda r: None, 0, []), (number_twice, 1, ["6"])):
            with tempfile.TemporaryDirectory() as name:
                planted, folder = Round(), pathlib.Path(name)
                plant(planted)
                planted.write(folder)
                logs = [folder / str(server) for server in range(SERVERS)]
                ran = subprocess.run([sys.executable, FOLDER / "judge.py", folder, *logs], capture_output=True, text=True)
            said = json.loads(ran.stdout)
            self.assertEqual((ran.returncode, [violation["promise"] for violation in said["violations"]]), (code, promises), ran.stderr)
            self.assertEqual((said["counts"]["grants"], said["counts"]["numbers"], said["unjudged"]), (4, 4, ""))


if __name__ == "__main__":  # writes a round with what is named planted into a folder
    round_of = Round()
    next((plant for plant, _, _ in PLANTED if plant.__name__ == sys.argv[2]), lambda r: None)(round_of)
    round_of.write(pathlib.Path(sys.argv[1]))
