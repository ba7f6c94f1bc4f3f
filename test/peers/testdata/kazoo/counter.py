"""kazoo's own counter under the command of a test; Counter.java says which commands there are."""

import sys

from kazoo.client import KazooClient


def answer(client, options, command, path, words):
    counter = client.Counter(path, **options)
    if command == "take":
        one = type(options.get("default", 0))(1)
        taken = []
        for _ in range(int(words[0])):
            counter += one
            taken.append(str(counter.post_value))
        return " ".join(taken)
    return "what is " + command + "?"


def main():
    client = KazooClient(hosts=sys.argv[1])
    client.start()
    options = {}
    for option in sys.argv[2:]:
        if option == "curator":
            options["support_curator"] = True
        elif option:  # what the counter begins with
            options["default"] = float(option) if "." in option else int(option)
    for line in sys.stdin:
        command, path, *words = line.split()
        try:
            print(answer(client, options, command, path, words), flush=True)
        except Exception as failure:
            print("failed: " + type(failure).__name__, flush=True)
    client.stop()
    client.close()


main()
