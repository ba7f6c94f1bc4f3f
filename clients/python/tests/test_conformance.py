"""The scenarios that every client passes: ../../conformance/scenarios.yaml, where the steps are explained."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

import sidekeeper
from sidekeeper import _clock, aio

from conftest import ROOT, Sidecar

TABLE = yaml.safe_load((ROOT / "clients" / "conformance" / "scenarios.yaml").read_text())
SITUATIONS = yaml.safe_load((ROOT / "clients" / "conformance" / "situations.yaml").read_text())
SCENARIOS = [scenario for scenario in TABLE if "python" in scenario.get("only", ["python"])]
WITHIN = 10.0

Step = dict[str, Any]


class Pending:
    """Something that is waited for in the background."""

    def __init__(self) -> None:
        self.position: int | None = None
        self.present: int | None = None
        self.ahead: dict[str, int] = {}
        self.task: asyncio.Task[Any] | None = None


class Job:
    """Something that runs in the background: a body, a leader, a member that stays."""

    def __init__(self) -> None:
        self.times = 0
        self.stopped = False
        self.held: Any = None
        self.finish = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None


class Watch:
    """What a watch has told so far."""

    def __init__(self) -> None:
        self.state: dict[str, str] | None = None
        self.stale = False
        self.leader: str | None = None


def _blind() -> float:
    raise OSError("blind")


class Stage:
    """Plays one scenario."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.clients: dict[str, aio.Client] = {}
        self.things: dict[str, Any] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        self.revocations: dict[str, sidekeeper.Revocation] = {}
        self.works_on: dict[str, str] = {}
        self.sight = pytest.MonkeyPatch()

    async def close(self) -> None:
        self.sight.undo()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for client in self.clients.values():
            await client.close()

    def client(self, step: Step) -> aio.Client:
        name = step.get("client", "one")
        if name not in self.clients:
            self.clients[name] = aio.Client(self.sidecar.address)
        return self.clients[name]

    async def play(self, step: Step) -> None:
        if "do" in step:
            await getattr(self, "do_" + step["do"].replace(" ", "_"))(step)
        else:
            await getattr(self, "expect_" + step["expect"].replace(" ", "_"))(step)

    async def attempt(self, step: Step, work: Awaitable[Any]) -> Any:
        """Does it, and sees that it fails as it must."""
        if "error" not in step:
            made = await work
            if "as" in step:
                self.things[step["as"]] = made
            return made
        with pytest.raises((sidekeeper.SidekeeperError, sidekeeper.LostError)) as caught:
            await work
        self.check_error(step, caught.value)
        return None

    def check_error(self, step: Step, error: BaseException) -> None:
        if isinstance(error, sidekeeper.SuspendedError):
            assert step["reason"] == "SUSPENDED"
            return
        cause = error.cause if isinstance(error, sidekeeper.LostError) else error
        assert isinstance(cause, sidekeeper.SidekeeperError), repr(error)
        reason = step.get("error", step.get("reason"))
        assert reason is None or cause.reason == reason, cause
        assert "code" not in step or cause.code.name == step["code"], cause
        assert "field" not in step or [each.field for each in cause.fields] == [step["field"]], cause
        self.check_text(step, cause.message)

    def check_text(self, step: Step, text: str) -> None:
        if "says" in step and "SIDEKEEPER_SKEW" not in os.environ:
            wanted = SITUATIONS[step["says"]]["clients"]
            assert re.fullmatch(".*".join(re.escape(part) for part in wanted.split("…")), text), text

    async def until(self, step: Step, happened: Callable[[], bool]) -> None:
        began = time.monotonic()
        within = step.get("within", WITHIN)
        while not happened():
            assert time.monotonic() - began < within, f"{step} does not happen"
            await asyncio.sleep(0.005)
        assert time.monotonic() - began >= step.get("after", 0), f"{step} happens too early"

    def background(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task

    # What to do.

    def lock_options(self, step: Step) -> aio.LockOptions:
        options: aio.LockOptions = {"owner": step.get("owner", ""), "detect_deadlock": step.get("detect deadlock", False)}
        if "mode" in step:
            options["mode"] = sidekeeper.Mode[step["mode"].upper()]
        if "wait" in step:
            options["wait"] = step["wait"]
        if "lease" in step:
            options["lease"] = self.things[step["lease"]]
        return options

    async def do_acquire(self, step: Step) -> None:
        options = self.lock_options(step)
        if "as" in step:
            options["on_revocation"] = lambda asked: self.revocations.__setitem__(step["as"], asked)
        pending = Pending()
        options["on_queued"] = lambda queued: setattr(pending, "position", queued.position)
        await self.ask(step, self.client(step).acquire(step["lock"], **options), pending)

    async def do_acquire_all(self, step: Step) -> None:
        pending = Pending()
        options = self.all_options(step)
        options["on_queued"] = lambda ahead: setattr(pending, "ahead", dict(ahead))
        await self.ask(step, self.client(step).acquire_all(*step["locks"], **options), pending)

    def all_options(self, step: Step) -> aio.AllOptions:
        options: aio.AllOptions = {
            "owner": step.get("owner", ""),
            "wait": step.get("wait"),
            "lease": self.things.get(step.get("lease", "")),
        }
        options["on_revocation"] = lambda asked: self.revocations.__setitem__(step.get("as", ""), asked)
        return options

    async def do_campaign(self, step: Step) -> None:
        pending = Pending()
        campaigning = self.client(step).campaign(
            step["election"],
            step["candidate"],
            value=step.get("value", ""),
            wait=step.get("wait"),
            on_candidate=lambda position, _: setattr(pending, "position", position),
        )
        await self.ask(step, campaigning, pending)

    def once_options(self, step: Step) -> aio.OnceOptions:
        return {
            "per_name": step.get("per") == "name",
            "skip_lost": step.get("on loss") == "skip",
            "skip_failed": step.get("on failure") == "skip",
            "max_attempts": step.get("attempts", 0),
            "lease": self.things.get(step.get("lease", "")),
            "wait": step.get("wait"),
            "owner": step.get("owner", ""),
        }

    async def do_begin(self, step: Step) -> None:
        pending, options = Pending(), self.once_options(step)
        options["on_queued"] = lambda queued: setattr(pending, "position", queued.position)
        await self.ask(step, self.client(step).begin(step["work"], step["key"], **options), pending)

    async def do_finish_attempt(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].finish(aio.Outcome[step["outcome"].upper()], step.get("note", "")))

    async def do_put_schedule(self, step: Step) -> None:
        self.sidecar.put_schedule(step["schedule"])

    async def do_run_schedule(self, step: Step) -> None:
        self.sidecar.run_schedule(step["schedule"], step["run"])

    async def do_work(self, step: Step) -> None:
        pending = Pending()
        options: aio.WorkOptions = {
            "lease": self.things.get(step.get("lease", "")),
            "wait": step.get("wait"),
            "owner": step.get("owner", ""),
            "on_queued": lambda queued: setattr(pending, "position", queued.position),
        }
        await self.ask(step, self.client(step).work(step["schedule"], **options), pending)

    async def do_create_semaphore(self, step: Step) -> None:
        await self.attempt(step, self.client(step).create_semaphore(step["semaphore"], step["count"]))

    async def do_acquire_permit(self, step: Step) -> None:
        pending = Pending()
        options: aio.PermitsOptions = {
            "numbered": step.get("numbered", False),
            "quarantine": step.get("quarantine"),
            "wait": step.get("wait"),
            "on_queued": lambda position: setattr(pending, "position", position),
        }
        await self.ask(step, self.client(step).acquire_permits(step["semaphore"], **options), pending)

    async def do_claim(self, step: Step) -> None:
        known = self.things[step["of"]].id if "of" in step else None
        options: dict[str, Any] = {"claim_id": known, "owner": step.get("owner", ""), "wait": step.get("wait")}
        await self.ask(step, self.client(step).claim(step["lock"], step["for"], "a test", **options), Pending())

    async def do_extend(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].extend(step["for"]))

    async def do_end_claim(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].release())

    async def do_resign(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].resign())

    async def do_proclaim(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].proclaim(step["value"]))

    async def do_transfer(self, step: Step) -> None:
        await self.attempt(step, self.client(step).transfer_leadership(step["election"], step["to"], reason=step.get("reason", "")))

    async def ask(self, step: Step, work: Any, pending: Pending) -> None:
        """Asks for something, in the background if it is for later."""
        if step.get("later"):
            pending.task = self.background(work)
            self.things[step["as"]] = pending
        else:
            await self.attempt(step, work)

    async def do_connect(self, step: Step) -> None:
        if "authority" not in step:
            self.connect_plainly(step)
            return
        foreign = Sidecar(self.sidecar.program, self.sidecar.directory / "foreign")
        foreign.end()
        folders = {"own": self.sidecar.certificates, "foreign": foreign.certificates}
        credentials = {"root_certificates": (folders[step["authority"]] / "ca.pem").read_bytes()}
        if "certificate" in step:
            expired = step["certificate"] == "expired"
            folder, name = folders["own" if expired else step["certificate"]], "expired" if expired else "client"
            credentials["certificate_chain"] = (folder / f"{name}.pem").read_bytes()
            credentials["private_key"] = (folder / f"{name}-key.pem").read_bytes()
        secure = grpc.ssl_channel_credentials(**credentials)
        self.clients[step["client"]] = aio.Client(self.address(step), credentials=secure)

    def address(self, step: Step) -> str:
        named = step.get("address", "the secure one")
        special = {
            "the secure one": self.sidecar.secure_address,
            "the ensemble's": self.sidecar.ensemble_address,
            "the served one": self.sidecar.served_address,
        }
        return str(special.get(named, named))

    async def do_serve(self, step: Step) -> None:
        await asyncio.to_thread(self.sidecar.serve, step.get("flags", ""), step.get("policy", ""))

    def connect_plainly(self, step: Step) -> None:
        self.sight.delenv("SIDEKEEPER_ADDRESS", raising=False)
        address = self.address(step)
        if "says" not in step:
            self.clients[step["client"]] = aio.Client(address)
            return
        with pytest.raises(ValueError, match="address") as refused:
            aio.Client(address)
        self.check_text(step, str(refused.value))

    async def do_cancel(self, step: Step) -> None:
        task = self.things[step["of"]].task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def do_release(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].release())

    async def do_open_lease(self, step: Step) -> None:
        await self.ask(step, self.client(step).open_lease(ttl=step.get("ttl"), wait=step.get("wait")), Pending())

    async def do_close_lease(self, step: Step) -> None:
        await self.attempt(step, self.things[step["of"]].close())

    async def do_close(self, step: Step) -> None:
        await self.client(step).close()

    async def do_expire(self, step: Step) -> None:
        if step.get("all"):
            await asyncio.to_thread(self.sidecar.expire_all)
        else:
            await asyncio.to_thread(self.sidecar.expire, step["lock"])

    async def do_suspend(self, step: Step) -> None:
        await asyncio.to_thread(self.sidecar.suspend, step["for"])

    async def do_freeze(self, _: Step) -> None:
        self.sidecar.send(signal.SIGSTOP)

    async def do_thaw(self, _: Step) -> None:
        self.sidecar.send(signal.SIGCONT)

    async def do_kill(self, _: Step) -> None:
        await asyncio.to_thread(self.sidecar.end)

    async def do_stop(self, _: Step) -> None:
        self.sidecar.send(signal.SIGTERM)

    async def do_break(self, step: Step) -> None:
        await asyncio.to_thread(self.sidecar.break_lock, step["lock"], step["within"])

    async def do_blind(self, _: Step) -> None:
        self.sight.setattr(_clock, "_read", _blind)

    async def do_sight(self, _: Step) -> None:
        self.sight.undo()

    async def do_fork(self, step: Step) -> None:
        if not (child := os.fork()):
            os._exit(await self.fail_in_child(step))
        assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0

    async def fail_in_child(self, step: Step) -> int:
        """How many things are not as they must be in a forked child."""
        inherited = self.things[step["of"]]
        wrong = int(inherited.valid) + int(not isinstance(inherited.error.cause, sidekeeper.ForkedError))
        for work in (inherited.release(), self.client(step).get_lock("orders"), self.client(step).acquire("orders")):
            try:
                wrong += 1 + bool(await work)
            except sidekeeper.LostError as error:
                wrong += int(not isinstance(error.cause, sidekeeper.ForkedError))
            except sidekeeper.SidekeeperError as error:
                wrong += int(not isinstance(error, sidekeeper.ForkedError))
        return wrong

    async def do_restart(self, _: Step) -> None:
        await asyncio.to_thread(self.sidecar.start)

    async def do_pause(self, step: Step) -> None:
        await asyncio.sleep(step["for"])

    async def do_revoke(self, step: Step) -> None:
        asked = self.client(step).revoke(step["lock"], reason=step.get("reason", ""), grace=step.get("grace"))
        await self.attempt(step, asked)

    async def do_run(self, step: Step) -> None:
        job = self.things[step["as"]] = Job()

        async def work(held: object) -> None:
            job.held = held
            job.times += 1
            try:
                await job.finish.wait()
            finally:
                job.stopped = True

        async def body() -> None:
            async with self.holding(step) as held:
                await work(held)

        if "work" in step:
            job.task = self.background(self.client(step).once(step["work"], step["key"], work, **self.once_options(step)))
        else:
            job.task = self.background(body())

    def holding(self, step: Step) -> AbstractAsyncContextManager[object]:
        if "locks" in step:
            return self.client(step).locks(*step["locks"], **self.all_options(step))
        grace, options = step.get("suspension grace"), self.lock_options(step)
        return self.client(step).lock(step["lock"], suspension_grace=grace, **options)

    async def do_lead(self, step: Step) -> None:
        job = self.things[step["as"]] = Job()

        async def body(lock: aio.Lock) -> None:
            job.held = lock
            job.times += 1
            await job.finish.wait()

        job.task = self.background(self.client(step).run_while_leader(step["lock"], body, **self.lock_options(step)))

    async def do_observe(self, step: Step) -> None:
        watch = self.things[step["as"]] = Watch()

        async def observe() -> None:
            async for leader in self.client(step).watch_leader(step["lock"]):
                watch.leader = leader.owner if leader else ""

        async def observe_election() -> None:
            async for observed in self.client(step).observe(step["election"]):
                leader = observed.leader
                watch.leader = f"{leader.candidate} at {leader.value}".removesuffix(" at ") if leader else ""

        self.background(observe_election() if "election" in step else observe())

    async def do_stay_joined(self, step: Step) -> None:
        job = self.things[step["as"]] = Job()

        def joined(_: aio.Membership) -> None:
            job.times += 1

        job.task = self.background(self.client(step).stay_joined(step["group"], step["member"], on_joined=joined))
        await self.until(step, lambda: job.times > 0)

    async def do_define_set(self, step: Step) -> None:
        self.sidecar.define(step["set"], *map(str, range(step["count"])))

    async def do_share(self, step: Step) -> None:
        job = Job()

        async def handler(item: aio.Item) -> None:
            assert item.name not in self.works_on, f"two work on {item.name}"
            self.works_on[item.name] = step["as"]
            try:
                await asyncio.Event().wait()
            finally:
                del self.works_on[item.name]

        async def work() -> None:
            sharing = self.background(self.client(step).share(step["set"], handler, member=step["member"]))
            sharing.add_done_callback(lambda _: job.finish.set())
            await job.finish.wait()
            sharing.cancel()
            with suppress(asyncio.CancelledError):
                await sharing

        if "error" in step:
            await self.attempt(step, work())
        else:
            job.task = self.background(work())
            self.things[step["as"]] = job

    async def do_finish(self, step: Step) -> None:
        job = self.things[step["of"]]
        job.finish.set()
        if step["of"] == "stay":
            job.task.cancel()
            await asyncio.wait([job.task])

    async def do_create(self, step: Step) -> None:
        await self.attempt(step, self.client(step).sequence(step["sequence"]).create(step["first"]))

    async def do_next(self, step: Step) -> None:
        number = await self.attempt(step, self.client(step).sequence(step["sequence"]).next())
        assert number == step.get("is")

    async def do_range(self, step: Step) -> None:
        numbers = await self.attempt(step, self.client(step).sequence(step["sequence"]).next_range(step["count"]))
        assert numbers is None or (numbers.first, numbers.last) == (step["first"], step["last"])

    async def do_take(self, step: Step) -> None:
        taken: list[int] = []
        async for number in self.client(step).sequence(step["sequence"]).numbers(ahead=step["ahead"]):
            taken.append(number)
            if len(taken) == step["count"]:
                break
        assert len(set(taken)) == step["count"]

    async def do_join(self, step: Step) -> None:
        conflict = sidekeeper.OnConflict[step.get("on conflict", "reject").upper()]
        lease, wait = self.things.get(step.get("lease", "")), step.get("wait")
        joining = self.client(step).join(step["group"], step["member"], lease=lease, on_conflict=conflict, wait=wait)
        await self.ask(step, joining, Pending())

    async def do_leave(self, step: Step) -> None:
        await self.ask(step, self.things[step["of"]].leave(), Pending())

    async def do_set_barrier(self, step: Step) -> None:
        await self.attempt(step, self.client(step).set_barrier(step["barrier"]))

    async def do_remove_barrier(self, step: Step) -> None:
        await self.attempt(step, self.client(step).remove_barrier(step["barrier"]))

    async def do_await_barrier(self, step: Step) -> None:
        pending = Pending()
        told = lambda: setattr(pending, "present", 0)  # noqa: E731
        await self.ask(step, self.client(step).await_barrier(step["barrier"], on_waiting=told), pending)

    async def do_enter(self, step: Step) -> None:
        pending = Pending()
        lease, wait = self.things.get(step.get("lease", "")), step.get("wait")
        told = lambda present: setattr(pending, "present", present)  # noqa: E731
        entering = self.client(step).enter_barrier(step["barrier"], step["size"], lease=lease, wait=wait, on_waiting=told)
        await self.ask(step, entering, pending)

    async def do_put(self, step: Step) -> None:
        conditions = {"missing": sidekeeper.if_missing(), "exists": sidekeeper.if_exists()}
        value = step["value"] if "value" in step else bytes(step["size"])
        await self.attempt(step, self.client(step).config.put(step["key"], value, conditions.get(step.get("if", ""))))

    async def do_get(self, step: Step) -> None:
        entry = await self.attempt(step, self.client(step).config.get(step["key"], linearizable=True))
        assert entry is None or entry.text == step["is"]

    async def do_delete(self, step: Step) -> None:
        await self.attempt(step, self.client(step).config.delete(step["key"]))

    async def do_watch(self, step: Step) -> None:
        watch = self.things[step["as"]] = Watch()
        client = self.client(step)
        if "lock" in step:
            self.background(self.follow_views(watch, client.watch_lock(step["lock"])))
        elif "group" in step:
            self.background(self.follow_views(watch, client.watch_group(step["group"])))
        else:
            self.background(self.follow(watch, client.config.watch_prefix(step["prefix"])))

    async def follow_views(self, watch: Watch, views: AsyncIterator[sidekeeper.LockView | sidekeeper.GroupView]) -> None:
        async for view in views:
            watch.state, watch.stale = {}, view.stale

    async def follow(self, watch: Watch, events: AsyncIterator[sidekeeper.ConfigEvent]) -> None:
        kinds = sidekeeper.ConfigEventKind
        async for event in events:
            state = {} if event.kind is kinds.STATE else dict(watch.state or {})
            for change in event.changes:
                state.pop(change.entry.key, None)
                if not change.deleted:
                    state[change.entry.key] = change.entry.text
            watch.stale = event.kind is kinds.STALE or (watch.stale and event.kind is kinds.CHANGED)
            watch.state = state

    # What must be so.

    async def expect_valid(self, step: Step) -> None:
        assert self.things[step["of"]].valid
        assert self.things[step["of"]].error is None

    async def expect_invalid(self, step: Step) -> None:
        assert not self.things[step["of"]].valid
        assert self.things[step["of"]].valid_for == 0

    async def expect_given_up(self, step: Step) -> None:
        await self.expect_invalid(step)
        assert self.things[step["of"]].error is None

    async def expect_lost(self, step: Step) -> None:
        await self.until(step, lambda: self.things[step["of"]].error is not None)
        self.check_error(step, self.things[step["of"]].error)
        await self.things[step["of"]].wait_ended()

    async def expect_suspended(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].suspended))

    async def expect_resumed(self, step: Step) -> None:
        await self.until(step, lambda: not self.things[step["of"]].suspended)

    async def expect_revocation(self, step: Step) -> None:
        await self.until(step, lambda: step["of"] in self.revocations)
        asked = self.revocations[step["of"]]
        assert asked.reason == step["reason"]
        assert (asked.grace is None) == ("grace" not in step)
        assert asked.grace is None or 0 < asked.grace <= step["grace"]

    async def expect_queued(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].position == step["position"]))

    async def expect_waiting(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].present == step.get("number", 0)))

    async def expect_going_on(self, step: Step) -> None:
        assert not self.things[step["of"]].task.done()

    async def expect_round(self, step: Step) -> None:
        one, other = self.things[step["of"]].round, self.things[step["than"]].round
        assert one > other if step["is"] == "larger" else one == other > 0

    async def expect_ahead(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].ahead == step["is"]))

    async def expect_yield_request(self, step: Step) -> None:
        await self.until(step, lambda: self.things[step["of"]].yield_request is not None)
        assert self.things[step["of"]].yield_request.reason == step["reason"]

    async def expect_granted(self, step: Step) -> None:
        await self.until(step, self.things[step["of"]].task.done)
        self.things[step["of"]] = self.things[step["of"]].task.result()

    async def expect_failed(self, step: Step) -> None:
        task = self.things[step["of"]].task
        await self.until(step, task.done)
        self.check_error(step, task.exception())

    async def expect_larger_token(self, step: Step) -> None:
        def token(thing: Any) -> int:
            return int(thing.fencing_tokens[step["lock"]] if "lock" in step else thing.fencing_token)

        assert token(self.things[step["of"]]) > token(self.things[step["than"]])

    async def expect_same_token(self, step: Step) -> None:
        assert self.things[step["of"]].fencing_token == self.things[step["than"]].fencing_token > 0

    async def expect_claimed(self, step: Step) -> None:
        claim = self.things[step["of"]]
        assert 0 < await claim.check() <= 58
        assert abs(claim.until.timestamp() - time.time() - step["for"]) < 30

    async def view(self, step: Step) -> sidekeeper.LockView:
        return await self.client(step).get_lock(step["lock"])

    async def expect_holders(self, step: Step) -> None:
        assert [holder.owner for holder in (await self.view(step)).holders] == step["are"]

    async def expect_name(self, step: Step) -> None:
        assert sidekeeper.name_of(step["of"]) == step["is"]

    async def expect_segment(self, step: Step) -> None:
        assert sidekeeper.segment_of(step["of"]) == step["is"]

    async def expect_waiters(self, step: Step) -> None:
        until = time.monotonic() + WITHIN
        while len((await self.view(step)).waiters) != step["number"]:
            assert time.monotonic() < until, step
            await asyncio.sleep(0.01)

    async def expect_running(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].times == 1))

    async def expect_stopped(self, step: Step) -> None:
        job = self.things[step["of"]]
        await self.until(step, lambda: bool(job.stopped))
        await asyncio.wait([job.task])  # which gives up the lock first
        self.check_error(step, job.task.exception())

    async def expect_done(self, step: Step) -> None:
        task = self.things[step["of"]].task
        await self.until(step, task.done)
        if "error" in step:
            self.check_error(step, task.exception())
        else:
            assert task.exception() is None

    async def expect_releasing(self, step: Step) -> None:
        job = self.things[step["of"]]
        await self.until(step, lambda: not job.held.valid and job.held.error is None)

    async def expect_leading(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].times == step["times"]))

    expect_joined = expect_leading

    async def expect_leader(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].leader == step["is"]))

    async def expect_members(self, step: Step) -> None:
        until = time.monotonic() + WITHIN
        while sorted((await self.client(step).get_group(step["group"])).members) != step["are"]:
            assert time.monotonic() < until, step
            await asyncio.sleep(0.01)

    async def expect_picked(self, step: Step) -> None:
        until = time.monotonic() + WITHIN
        while (member.member if (member := (await self.client(step).get_group(step["group"])).pick(step["key"])) else "") != step["is"]:
            assert time.monotonic() < until, step
            await asyncio.sleep(0.01)

    async def expect_state(self, step: Step) -> None:
        await self.until(step, lambda: self.things[step["of"]].state == step["is"] and not self.things[step["of"]].stale)

    async def expect_ran(self, step: Step) -> None:
        assert self.things[step["of"]].times == step["times"]

    async def expect_attempt(self, step: Step) -> None:
        assert self.things[step["of"]].number == step["number"]

    async def expect_tick(self, step: Step) -> None:
        assert self.things[step["of"]].run_id == step["run"]
        assert abs(time.time() - self.things[step["of"]].at.timestamp()) < 60

    async def expect_number(self, step: Step) -> None:
        assert self.things[step["of"]].number == step["number"]

    async def expect_no_number(self, step: Step) -> None:
        assert self.things[step["of"]].number is None

    async def expect_rests(self, step: Step) -> None:
        (rests,) = (await self.client(step).get_semaphore(step["semaphore"])).quarantines
        assert rests.number == step["number"]
        assert rests.until is not None
        assert abs(rests.until.timestamp() - time.time() - step["for"]) < 30

    async def expect_works_on(self, step: Step) -> None:
        await self.until(step, lambda: list(self.works_on.values()).count(step["of"]) == step["number"])

    async def expect_history(self, step: Step) -> None:
        assert self.sidecar.history(step["schedule"]) == step["are"]

    async def expect_exited(self, step: Step) -> None:
        await self.until(step, self.sidecar.has_exited)

    async def expect_stale(self, step: Step) -> None:
        await self.until(step, lambda: bool(self.things[step["of"]].stale))

    async def expect_fresh(self, step: Step) -> None:
        await self.until(step, lambda: self.things[step["of"]].state is not None and not self.things[step["of"]].stale)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"].replace(" ", "-"))
async def test_conformance(scenario: dict[str, Any], program: str, directory: Path) -> None:
    sidecar = Sidecar(program, directory, scenario.get("leases", 4))
    stage = Stage(sidecar)
    try:
        for step in scenario["steps"]:
            await stage.play(step)
    finally:
        await stage.close()
        sidecar.end()


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 40
