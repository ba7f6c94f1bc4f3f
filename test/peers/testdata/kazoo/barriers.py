"""kazoo's double barrier where Sidekeeper and Curator use it, too."""


def enter(client, path, size):
    """Returns when inside. kazoo raises nothing when it fails, as it does when the directory, a container, is removed meanwhile."""
    while True:
        entry = client.DoubleBarrier(path, size)
        entry.enter()
        if entry.participating:
            return entry
