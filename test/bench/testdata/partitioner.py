"""A member that shares items by kazoo's SetPartitioner. It prints +ITEM when it begins to work on an item, and -ITEM when it ends."""

import signal
import sys
import threading

from kazoo.client import KazooClient

hosts, member, items = sys.argv[1], sys.argv[2], int(sys.argv[3])
stopping = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stopping.set())
client = KazooClient(hosts=hosts, timeout=15)
client.start()
has = set()


def become(wanted):
    for item in sorted(has - wanted):
        print(f"-{item}")
    for item in sorted(wanted - has):
        print(f"+{item}")
    has.clear()
    has.update(wanted)
    sys.stdout.flush()


# As long as Sidekeeper waits for members to settle; kazoo's default is 30 s.
partitioner = client.SetPartitioner("/partitioner", set=list(range(items)), identifier=member, time_boundary=3)
while not stopping.is_set():
    if partitioner.failed:
        sys.exit("the partitioner has failed")
    if partitioner.release:
        become(set())
        partitioner.release_set()
    elif partitioner.acquired:
        become(set(partitioner))
        stopping.wait(0.02)
    elif partitioner.allocating:
        partitioner.wait_for_acquire(1)
become(set())
partitioner.finish()
client.stop()
