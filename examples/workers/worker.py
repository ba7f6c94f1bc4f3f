"""One worker of a pool. The workers elect a leader, who hands jobs out to those who are there.

    python worker.py worker-1

Everything lies in the configuration, below `pool/`: `todo/JOB` is a job that nobody has, `work/WORKER/JOB` one that a worker has, and
`done/JOB` its result. A job goes from one to the next in a commit, which happens as a whole or not at all, and only if the job is still
where it was. However late a leader or a worker comes back who was away: no job is lost, and each has one result. (The work itself may be
begun twice, by somebody who was thought gone. If it does something to the world, let that check the key, or a fencing token.)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal

from sidekeeper import Commit, Entry, GroupView, KeyNotFoundError, OutcomeUnknownError, PreconditionFailedError, aio, if_missing, if_version

TODO, WORK, DONE = "pool/todo/", "pool/work/", "pool/done/"
GROUP, LEADER = "pool", "pool/leader"


async def move(client: aio.Client, entry: Entry, to: str, text: str) -> bool:
    """Moves a job, if it is still there as we saw it."""
    commit = Commit()
    commit.delete(entry.key, if_version(entry.version))
    commit.put(to, text, if_missing())
    try:
        await client.config.commit(commit)
    except (KeyNotFoundError, PreconditionFailedError):
        return False  # somebody else was faster
    except OutcomeUnknownError:
        return False  # we shall see it, moved or not
    return True


class Worker:
    def __init__(self, client: aio.Client, name: str) -> None:
        self.client, self.name = client, name
        self.group: GroupView | None = None

    async def run(self) -> None:
        joined = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.client.stay_joined(GROUP, self.name, on_joined=lambda _: joined.set()))
            await joined.wait()
            tasks.create_task(self.work())
            tasks.create_task(self.client.run_while_leader(LEADER, self.lead, owner=self.name))

    async def work(self) -> None:
        """Does what is handed to this worker."""
        mine = f"{WORK}{self.name}"
        async with self.client.config.view(mine) as jobs:
            while True:
                await jobs.wait_changed()
                for job in list(jobs.values()):
                    name = job.key.removeprefix(mine + "/")
                    result = job.text.upper()  # the work itself
                    if await move(self.client, job, DONE + name, f"{result} by {self.name}"):
                        print(f"did {name}", flush=True)

    async def lead(self, lock: aio.Lock) -> None:
        """Hands out jobs for as long as this worker leads. It is cancelled when it does not any more."""
        print(f"leading with token {lock.fencing_token}", flush=True)
        changed = asyncio.Event()
        async with self.client.config.view("pool") as jobs, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watch_group(changed))
            tasks.create_task(self.watch_jobs(jobs, changed))
            while True:
                await changed.wait()
                changed.clear()
                await self.hand_out(list(jobs.values()))

    async def watch_group(self, changed: asyncio.Event) -> None:
        async for group in self.client.watch_group(GROUP):
            if not group.stale:  # then it is not known who is gone
                self.group = group
                changed.set()

    async def watch_jobs(self, jobs: aio.ConfigView, changed: asyncio.Event) -> None:
        while True:
            await jobs.wait_changed()
            changed.set()

    async def hand_out(self, jobs: list[Entry]) -> None:
        """Gives each job to the worker whom it belongs to, and takes the jobs of those who are gone."""
        for job in jobs:
            if self.group is None:
                return
            if job.key.startswith(TODO):
                name = job.key.removeprefix(TODO)
                if worker := self.group.pick(name):
                    await move(self.client, job, f"{WORK}{worker.member}/{name}", job.text)
            elif job.key.startswith(WORK):
                owner, _, name = job.key.removeprefix(WORK).partition("/")
                if owner not in self.group.members:
                    await move(self.client, job, TODO + name, job.text)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Works in a pool until it is interrupted.")
    parser.add_argument("name", help="this worker's name, which no other one has")
    arguments = parser.parse_args()
    async with aio.Client() as client:
        working = asyncio.ensure_future(Worker(client, arguments.name).run())
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, working.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await working


if __name__ == "__main__":
    asyncio.run(main())
