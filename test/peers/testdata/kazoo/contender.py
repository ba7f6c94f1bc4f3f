"""kazoo's locks under the command of a test; Contender.java says which commands there are."""

import concurrent.futures
import os
import sys
import threading
import time

import barriers
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from locks import SharedLock, SharedReadLock, SharedWriteLock


def lock_with_patterns(client, path):
    client.ensure_path(path)
    return Lock(client, path, extra_lock_patterns=["-lock-"])


class Meeting:
    """Is inside a double barrier until all are; library_test.go says which."""

    def __init__(self, client, path):
        self.client = client
        self.path = path
        self.size = int(path.rsplit("-", 1)[1])
        self.rounds = 0
        self.entry = None

    def __enter__(self):
        self.entry = barriers.enter(self.client, "%s-%d" % (self.path, self.rounds % 2), self.size)
        self.rounds += 1

    def __exit__(self, *failure):
        self.entry.leave()

    def meet(self, inside):
        with open(inside, "a") as file:
            file.write(".")
        while os.path.getsize(inside) < self.rounds * self.size:
            time.sleep(0.001)


RECIPES = {
    "lock": Lock,
    "patterns": lock_with_patterns,
    "shared": SharedLock,
    "read": SharedReadLock,
    "write": SharedWriteLock,
    "meeting": Meeting,
    "stock-read": ReadLock,
    "stock-write": WriteLock,
}


class Asking:
    """What one contender is about."""

    def __init__(self, lock):
        self.lock = lock
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.granted = None

    def answer(self, command, *words):
        if command == "ask":
            self.granted = self.thread.submit(self.lock.acquire)
            return "asked"
        if command == "granted":
            try:
                self.granted.result(timeout=int(words[0]) / 1000)
                return "held"
            except concurrent.futures.TimeoutError:
                return "waits"
        if command == "leave":
            self.lock.cancel()
            try:
                self.granted.result()
                return "held"
            except CancelledError:
                return "left"
        if command == "release":
            self.lock.release()
            return "released"
        return "what is " + command + "?"


class Worker:
    """A contender with a session of its own that works while it holds the lock; work_test.go says what it writes."""

    def __init__(self, client, recipe, path):
        self.client = client
        self.lock = RECIPES[recipe](client, path)
        self.reads = recipe in ("read", "meeting")

    def work(self, folder, name, rounds):
        with open(os.path.join(folder, name + ".record"), "w") as record:
            going = os.path.join(folder, "going")
            while rounds > 0 or os.path.exists(going):
                rounds -= 1
                asked = time.monotonic_ns()
                with self.lock:
                    record.write("%s %d %d" % ("read" if self.reads else "write", asked, time.monotonic_ns()))
                    record.flush()
                    if isinstance(self.lock, Meeting):
                        self.lock.meet(os.path.join(folder, "inside"))
                    self.count(os.path.join(folder, "counter"))
                    record.write(" %d\n" % time.monotonic_ns())
                    record.flush()
        self.client.stop()
        self.client.close()

    def count(self, counter):
        before = counted(counter)
        time.sleep(0.001)
        if not self.reads:
            with open(counter, "r+") as file:
                file.write("%012d" % (before + 1))
        elif counted(counter) != before:
            raise RuntimeError("%d became %d while it was read" % (before, counted(counter)))


def counted(counter):
    with open(counter) as file:
        return int(file.read())


class Program:
    def __init__(self, servers, seconds, credentials=None):
        self.servers = servers
        self.seconds = seconds
        self.auth_data = [("digest", credentials)] if credentials else []
        self.asking = {}
        self.gathered = []
        self.shared = self.connect()

    def connect(self):
        client = KazooClient(hosts=self.servers, timeout=self.seconds, auth_data=self.auth_data)
        client.start()
        return client

    def answer(self, command, *words):
        if command == "clock":
            return time.monotonic_ns()
        if command == "make":
            name, recipe, path = words
            self.asking[name] = Asking(RECIPES[recipe](self.shared, path))
            return "made"
        if command == "gather":
            recipe, path, contenders = words
            self.gathered += [Worker(self.connect(), recipe, path) for _ in range(int(contenders))]
            return "gathered"
        if command == "contend":
            return self.contend(int(words[0]), words[1])
        return self.asking[words[0]].answer(command, *words[1:])

    def contend(self, rounds, folder):
        """Has all that were gathered hold the lock so often, and lets them go."""
        failures = []

        def run(worker, name):
            try:
                worker.work(folder, name, rounds)
            except Exception as failure:
                failures.append(failure)

        threads = []
        for worker in self.gathered:
            name = "kazoo-%d-%d" % (os.getpid(), len(threads))
            threads.append(threading.Thread(target=run, args=(worker, name)))
            threads[-1].start()
        self.gathered = []
        for thread in threads:
            thread.join()
        return "failed: " + repr(failures) if failures else "counted"


def main():
    program = Program(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
    for line in sys.stdin:
        try:
            print(program.answer(*line.split()), flush=True)
        except Exception as failure:
            print("failed: " + repr(failure), flush=True)
    program.shared.stop()
    os._exit(0)  # a thread that still waits for a lock would keep the process


main()
