"""Wrong options and arguments are refused at once: no test here has a sidecar."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import sidekeeper
from sidekeeper import Mode, OnConflict, aio
from sidekeeper._options import RULES

SECONDS = "a number of seconds from 0 to 315360000, or None"
COUNT = "an int from 0 to 2147483647"
MODES = "Mode.EXCLUSIVE, Mode.READ or Mode.WRITE"

WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda c: c.acquire("a", mode="rw"), TypeError, f"mode is 'rw': {MODES}"),
    (lambda c: c.acquire("a", mode=None), TypeError, f"mode is None: {MODES}"),
    (lambda c: c.acquire("a", mode=OnConflict.WAIT), TypeError, f"mode is <OnConflict.WAIT: 2>: {MODES}"),
    (lambda c: c.acquire("a", lease="9f"), TypeError, "lease is '9f': a Lease of the same client, or None"),
    (lambda c: c.acquire("a", wait="x"), TypeError, f"wait is 'x': {SECONDS}"),
    (lambda c: c.acquire("a", wait=True), TypeError, f"wait is True: {SECONDS}"),
    (lambda c: c.acquire("a", wait=timedelta(0, 5)), TypeError, f"wait is datetime.timedelta(seconds=5): {SECONDS}"),
    (lambda c: c.acquire("a", wait=-1), ValueError, f"wait is -1: {SECONDS}"),
    (lambda c: c.acquire("a", wait=math.nan), ValueError, f"wait is nan: {SECONDS}"),
    (lambda c: c.acquire("a", wait=math.inf), ValueError, f"wait is inf: {SECONDS}"),
    (lambda c: c.acquire("a", lock_delay=-0.5), ValueError, f"lock_delay is -0.5: {SECONDS}"),
    (lambda c: c.acquire("a", owner=5), TypeError, "owner is 5: a str, or None"),
    (lambda c: c.acquire("a", metadata="x"), TypeError, "metadata is 'x': a mapping of str to str, or None"),
    (lambda c: c.acquire("a", metadata={"port": 80}), TypeError, "metadata['port'] is 80: a str"),
    (lambda c: c.acquire("a", metadata={80: "port"}), TypeError, "a key of metadata is 80: a str"),
    (lambda c: c.acquire("a", detect_deadlock="no"), TypeError, "detect_deadlock is 'no': a bool"),
    (lambda c: c.acquire("a", on_queued="f"), TypeError, "on_queued is 'f': a callable, or None"),
    (lambda c: c.acquire(5), TypeError, "name is 5: a str"),
    (lambda c: c.lock("a", mode="rw"), TypeError, f"mode is 'rw': {MODES}"),
    (lambda c: c.lock("a", suspension_grace=-2), ValueError, f"suspension_grace is -2: {SECONDS}"),
    (lambda c: c.lock(None), TypeError, "name is None: a str"),
    (lambda c: c.run_while_leader("a", None), TypeError, "body is None: a callable"),
    (lambda c: c.run_while_leader("a", print, wait="x"), TypeError, f"wait is 'x': {SECONDS}"),
    (lambda c: c.acquire_all("a", 5), TypeError, "lock is 5: a str or a WantedLock"),
    (lambda c: c.acquire_all(["a", "b"]), TypeError, "lock is ['a', 'b']: a str or a WantedLock"),
    (lambda c: c.locks(sidekeeper.WantedLock("a", "rw")), TypeError, f"mode is 'rw': {MODES}"),  # type: ignore[arg-type]
    (lambda c: c.open_lease(ttl="10s"), TypeError, f"ttl is '10s': {SECONDS}"),
    (lambda c: c.revoke("a", grace=-1), ValueError, f"grace is -1: {SECONDS}"),
    (lambda c: c.acquire_permits("a", permits="2"), TypeError, f"permits is '2': {COUNT}"),
    (lambda c: c.acquire_permits("a", permits=-1), ValueError, f"permits is -1: {COUNT}"),
    (lambda c: c.acquire_permits("a", numbered=1), TypeError, "numbered is 1: a bool"),
    (lambda c: c.acquire_permits("a", quarantine="1m"), TypeError, f"quarantine is '1m': {SECONDS}"),
    (lambda c: c.acquire_permits("a", quarantine=-1), ValueError, f"quarantine is -1: {SECONDS}"),
    (lambda c: c.begin(5, "k"), TypeError, "name is 5: a str"),
    (lambda c: c.begin("a", 5), TypeError, "key is 5: a str"),
    (lambda c: c.begin("a", "k", per_name=1), TypeError, "per_name is 1: a bool"),
    (lambda c: c.begin("a", "k", keep="1d"), TypeError, f"keep is '1d': {SECONDS}"),
    (lambda c: c.attempt("a", "k", skip_lost="no"), TypeError, "skip_lost is 'no': a bool"),
    (lambda c: c.attempt("a", "k", max_attempts=-1), ValueError, f"max_attempts is -1: {COUNT}"),
    (lambda c: c.once("a", "k", None), TypeError, "work is None: a callable"),
    (lambda c: c.claim("a", None, "x"), TypeError, "reserve_for is None: a number of seconds from 0 to 315360000"),
    (lambda c: c.claim("a", 60, "x", claim_id=5), TypeError, "claim_id is 5: a str, or None"),
    (lambda c: c.claim_by_id(5), TypeError, "claim_id is 5: a str, or None"),
    (lambda c: c.share(5, print), TypeError, "name is 5: a str"),
    (lambda c: c.share("a", None), TypeError, "handler is None: a callable"),
    (lambda c: c.share("a", print, capacity="2"), TypeError, f"capacity is '2': {COUNT}, or None"),
    (lambda c: c.share("a", print, drain_timeout=None), TypeError, "drain_timeout is None: a number of seconds from 0 to 315360000"),
    (lambda c: c.create_semaphore("a", 1.5), TypeError, f"limit is 1.5: {COUNT}"),
    (lambda c: c.resize_semaphore("a", 5, reason=5), TypeError, "reason is 5: a str, or None"),
    (lambda c: c.await_barrier("a", wait="x"), TypeError, f"wait is 'x': {SECONDS}"),
    (lambda c: c.enter_barrier("a", 10**10), ValueError, f"size is 10000000000: {COUNT}"),
    (lambda c: c.campaign("a", None), TypeError, "candidate is None: a str"),
    (lambda c: c.campaign("a", "b", value=80), TypeError, "value is 80: a str, or None"),
    (lambda c: c.transfer_leadership("a", "b", grace="x"), TypeError, f"grace is 'x': {SECONDS}"),
    (
        lambda c: c.join("a", "b", on_conflict=Mode.READ),
        TypeError,
        "on_conflict is <Mode.READ: 2>: OnConflict.REJECT, OnConflict.WAIT or OnConflict.REPLACE",
    ),
    (lambda c: c.join("a", "b", lease=5), TypeError, "lease is 5: a Lease of the same client, or None"),
    (lambda c: c.watch_lock(5), TypeError, "name is 5: a str"),
    (lambda c: c.observe(5), TypeError, "name is 5: a str"),
    (lambda c: c.sequence("a").next(relaxed="no"), TypeError, "relaxed is 'no': a bool"),
    (lambda c: c.sequence("a").next_range(2.5), TypeError, f"count is 2.5: {COUNT}"),
    (lambda c: c.sequence("a").create(2**63), ValueError, f"first is {2**63}: an int from 0 to {2**63 - 1}"),
    (lambda c: c.config.get("a", linearizable=1), TypeError, "linearizable is 1: a bool"),
    (lambda c: c.config.put("a", 5), TypeError, "value is 5: bytes or a str"),
    (
        lambda c: c.config.put("a", "b", "missing"),
        TypeError,
        "precondition is 'missing': what if_version, if_missing or if_exists has returned, or None",
    ),
    (lambda c: c.config.put("a", "b", sidekeeper.if_version(-1)), ValueError, f"version is -1: {COUNT}"),
    (lambda c: c.config.watch("a", 5), TypeError, "key is 5: a str"),
    (lambda c: type(c)(7181), TypeError, "target is 7181: a str, or None"),
    (lambda c: type(c)("unix:///s", credentials=5), TypeError, "credentials is 5: grpc.ChannelCredentials, or None"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
async def test_what_is_wrong_is_refused_with_asyncio(call: Callable[[aio.Client], Any], kind: type[Exception], text: str) -> None:
    async with aio.Client("unix:///nowhere/s.sock") as client:
        with pytest.raises(kind) as caught:
            given = call(client)
            await (anext(given) if isinstance(given, AsyncIterator) else given)
        assert str(caught.value) == text


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_what_is_wrong_is_refused_with_threads(call: Callable[[sidekeeper.Client], Any], kind: type[Exception], text: str) -> None:
    with sidekeeper.Client("unix:///nowhere/s.sock") as client:
        with pytest.raises(kind) as caught:
            given = call(client)
            if isinstance(given, Iterator):
                next(given)
        assert str(caught.value) == text


@pytest.mark.parametrize("locked", [sidekeeper.locked, aio.locked])
def test_a_decorator_is_refused_before_it_decorates(locked: Any) -> None:
    with pytest.raises(TypeError, match=r"there is no option 'waitt'; the options are .*, owner, suspension_grace, wait$"):
        locked(print, "orders", waitt=5)
    with pytest.raises(TypeError, match="wait is 'x': "):
        locked(print, "orders", wait="x")


@pytest.mark.parametrize("done_once", [sidekeeper.done_once, aio.done_once])
def test_work_that_is_done_once_is_refused_before_it_is_decorated(done_once: Any) -> None:
    with pytest.raises(TypeError, match=r"there is no option 'tries'; the options are keep, .*, wait$"):
        done_once(print, "mail", "k", tries=5)


@pytest.mark.parametrize("client", [sidekeeper.Client, aio.Client])
def test_an_object_is_refused_when_it_is_made(client: Any) -> None:
    async def make() -> None:
        made = client("unix:///nowhere/s.sock")
        for hold in (made.lock, made.locks):
            with pytest.raises(TypeError, match=r"there is no option 'waitt'; the options are .*, suspension_grace, wait$"):
                hold("orders", waitt=5)
        if client is aio.Client:
            await made.close()
        else:
            await asyncio.to_thread(made.close)

    asyncio.run(make())


def test_every_option_has_a_rule() -> None:
    sets = (aio.LockOptions, aio.AllOptions, aio.PermitsOptions, aio.OnceOptions, aio.BarrierOptions, aio.CampaignOptions)
    assert {name for options in sets for name in options.__optional_keys__} <= RULES.keys()
