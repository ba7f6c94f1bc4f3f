"""kazoo's own barriers under the command of a test; Gate.java says which commands there are."""

import concurrent.futures
import os
import sys

import barriers
from kazoo.client import KazooClient


class Gate:
    def __init__(self, client):
        self.client = client
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.asked = None
        self.entry = None

    def answer(self, command, *words):
        if command == "set":
            self.client.Barrier(words[0]).create()
            return "set"
        if command == "remove":
            self.client.Barrier(words[0]).remove()
            return "removed"
        if command == "wait":
            return self.ask(self.client.Barrier(words[0]).wait)
        if command == "enter":
            return self.enter(words[0], int(words[1]))
        if command == "leave":
            return self.ask(self.entry.leave)
        if command == "done":
            return self.done(int(words[0]))
        return "what is " + command + "?"

    def enter(self, path, size):
        return self.ask(self.come_in, path, size)

    def come_in(self, path, size):
        self.entry = barriers.enter(self.client, path, size)

    def ask(self, what, *arguments):
        self.asked = self.thread.submit(what, *arguments)
        return "asked"

    def done(self, milliseconds):
        try:
            self.asked.result(timeout=milliseconds / 1000)
            return "done"
        except concurrent.futures.TimeoutError:
            return "waits"


def main():
    client = KazooClient(hosts=sys.argv[1])
    client.start()
    gate = Gate(client)
    for line in sys.stdin:
        try:
            print(gate.answer(*line.split()), flush=True)
        except Exception as failure:
            print("failed: " + repr(failure), flush=True)
    client.stop()
    os._exit(0)  # a thread that still waits would keep the process


main()
