"""kazoo's own lock under the command of a test; Contender.java says which commands there are."""

import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock


class LockNamedAsCurators(Lock):
    """The recipe with places named as Curator and Sidekeeper name them, so that each waits for the other."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


RECIPES = {
    "stock": Lock,
    "patterns": lambda client, path: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "subclass": LockNamedAsCurators,
}


class Contender:
    def __init__(self, servers):
        self.servers = servers
        self.locks = {}
        self.gathered = []
        self.clients = []

    def answer(self, command, *words):
        if command == "make":
            name, recipe, path = words
            self.locks[name] = self.lock(recipe, path)
            return "made"
        if command == "acquire":
            name, milliseconds = words
            return self.acquire(self.locks[name], int(milliseconds) / 1000)
        if command == "release":
            self.locks[words[0]].release()
            return "released"
        if command == "gather":
            recipe, path, contenders = words
            self.gathered = [self.lock(recipe, path) for _ in range(int(contenders))]
            return "gathered"
        if command == "contend":
            rounds, folder = words
            return self.contend(int(rounds), folder)
        return "what is " + command + "?"

    def lock(self, recipe, path):
        client = KazooClient(hosts=self.servers)
        client.start()
        self.clients.append(client)
        return RECIPES[recipe](client, path)

    @staticmethod
    def acquire(lock, seconds):
        try:
            return "held" if lock.acquire(timeout=seconds) else "waits"
        except LockTimeout:
            return "waits"

    def contend(self, rounds, folder):
        failures = []

        def run(lock):
            try:
                for _ in range(rounds):
                    with lock:
                        count(folder)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=run, args=(lock,)) for lock in self.gathered]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "failed: " + repr(failures) if failures else "counted"

    def close(self):
        for client in self.clients:
            client.stop()
            client.close()


def count(folder):
    """Counts one more. Who is not alone finds the other's marker, or makes a count be lost."""
    marker = os.path.join(folder, "marker")
    counter = os.path.join(folder, "counter")
    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    with open(counter) as file:
        before = int(file.read())
    time.sleep(0.001)
    with open(counter, "w") as file:
        file.write(str(before + 1))
    os.remove(marker)


def main():
    contender = Contender(sys.argv[1])
    for line in sys.stdin:
        try:
            print(contender.answer(*line.split()), flush=True)
        except Exception as failure:
            print("failed: " + repr(failure), flush=True)
    contender.close()


main()
