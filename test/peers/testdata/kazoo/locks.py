"""Locks of kazoo that share their queues with Sidekeeper, Curator and go-zookeeper."""

from kazoo.exceptions import NoNodeError
from kazoo.recipe.lock import Lock
from kazoo.retry import ForceRetryError


class SharedLock(Lock):
    """A mutex; kazoo's own, but for the names of its nodes and of those that it waits for."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]

    def _inner_acquire(self, *arguments, **options):
        try:
            return super()._inner_acquire(*arguments, **options)
        except NoNodeError:
            # The lock's node is a container: ZooKeeper removes it when nobody holds the lock or waits for it.
            self.assured_path = False
            raise ForceRetryError()


class SharedReadLock(SharedLock):
    """The reader of a read/write lock."""

    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["-__WRIT__"]


class SharedWriteLock(SharedLock):
    """The writer of a read/write lock."""

    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["-__WRIT__", "-__READ__"]
