"""A group as kazoo's applications build one, under the command of a test; Member.java says which commands there are."""

import sys

from kazoo.client import KazooClient


class Group:
    def __init__(self, client):
        self.client = client
        self.own = None
        self.seen = []

    def answer(self, command, words):
        if command == "join":
            path, member, text = words
            self.own = path + "/" + member
            self.client.create(self.own, text.encode(), ephemeral=True, makepath=True)
            self.client.ChildrenWatch(path, self.see)
            return "joined"
        if command == "members":
            return " ".join(self.seen)
        if command == "leave":
            self.client.delete(self.own)
            return "left"
        return "what is " + command + "?"

    def see(self, children):
        self.seen = sorted(children)


def main():
    client = KazooClient(hosts=sys.argv[1])
    client.start()
    group = Group(client)
    for line in sys.stdin:
        command, *words = line.split()
        print(group.answer(command, words), flush=True)
    client.stop()
    client.close()


main()
