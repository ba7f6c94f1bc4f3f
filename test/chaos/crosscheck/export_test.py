"""Exports a round, and reads it as other checkers do."""
import json
import pathlib
import tempfile
import unittest

import export
from judge_test import Round, end_told_late


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.round = Round()
        end_told_late(self.round)
        self.operations = list(export.operations(sorted(self.round.events, key=lambda event: event["at"])))

    def test_every_process_waits_for_an_answer_before_it_goes_on(self):
        calls = {}
        for operation in self.operations:
            if isinstance(operation["process"], int):
                calls.setdefault(operation["process"], []).append((operation["type"], operation["f"]))
        self.assertIn([("invoke", "acquire"), ("ok", "acquire"), ("invoke", "release"), ("ok", "release")], calls.values())
        self.assertIn([("invoke", "acquire"), ("ok", "acquire")], calls.values())  # it was lost
        self.assertIn([("invoke", "txn"), ("fail", "txn")], calls.values())
        self.assertIn([("invoke", "next"), ("ok", "next")], calls.values())
        for each in calls.values():
            self.assertEqual([kind == "invoke" for kind, _ in each], [True, False] * (len(each) // 2), each)

    def test_what_a_caller_says_twice_is_one_call(self):
        events = [{"at": at, "client": 1, "op": 1, "kind": kind, "code": "OK"}
                  for at, kind in enumerate(("called", "granted", "releasing", "releasing", "ended"))]
        operations = export.operations(events)
        self.assertEqual([each["process"] for each in operations], [0, 0, 0, "observer", 0])

    def test_no_event_is_left_out_and_none_is_changed(self):
        self.assertEqual([operation["value"] for operation in self.operations], sorted(self.round.events, key=lambda event: event["at"]))
        self.assertEqual([operation["index"] for operation in self.operations], list(range(len(self.round.events))))

    def test_what_was_not_granted_has_failed_and_what_nobody_knows_is_info(self):
        for begin, end, want in (("called", {"kind": "ended", "code": "Canceled"}, "fail"),
                                 ("asked", {"kind": "failed", "code": "Unavailable"}, "info"),
                                 ("invoked", {"kind": "returned", "outcome": "unknown"}, "info")):
            events = [{"at": 1, "client": 1, "op": 1, "kind": begin}, {"at": 2, "client": 1, "op": 1, **end}]
            self.assertEqual([operation["type"] for operation in export.operations(events)], ["invoke", want])

    def test_edn_has_keywords_for_names_and_text_as_it_is(self):
        value = {"at": 1, "stale": True, "key": 'a"ä', "keys": ["x", None]}
        self.assertEqual(export.edn({"type": "ok", "process": "nemesis", "value": value}),
                         '{:type :ok, :process :nemesis, :value {:at 1, :stale true, :key "a\\"ä", :keys ["x" nil]}}')

    def test_the_files_have_one_operation_a_line(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.round.write(folder)
            export.export(folder)
            lines, maps = ((folder / f"history.{kind}").read_text().splitlines() for kind in ("jsonl", "edn"))
        self.assertEqual([json.loads(line) for line in lines], self.operations)
        self.assertEqual(maps, [export.edn(operation) for operation in self.operations])


if __name__ == "__main__":
    unittest.main()
