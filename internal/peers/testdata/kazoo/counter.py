"""kazoo's own counter under the command of a test; Counter.java says which commands there are."""

import sys

from kazoo.client import KazooClient


def answer(client, options, command, path, words):
    counter = client.Counter(path, **options)
    if command == "take":
        taken = []
        for _ in range(int(words[0])):
            counter += 1
            taken.append(str(counter.post_value))
        return " ".join(taken)
    return "what is " + command + "?"


def main():
    client = KazooClient(hosts=sys.argv[1])
    client.start()
    options = {"support_curator": True} if "curator" in sys.argv[2:] else {}
    for line in sys.stdin:
        command, path, *words = line.split()
        try:
            print(answer(client, options, command, path, words), flush=True)
        except Exception as failure:
            print("failed: " + type(failure).__name__, flush=True)
    client.stop()
    client.close()


main()
