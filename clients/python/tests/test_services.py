"""Sequences, membership and configuration with asyncio."""

from __future__ import annotations

import asyncio

import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar


async def test_numbers_are_handed_out_once(client: aio.Client) -> None:
    ids = client.sequence("ids")
    assert await ids.create(100) > 0
    assert await ids.next() == 100
    numbers = await ids.next_range(3)
    assert list(numbers) == [101, 102, 103]
    assert len(numbers) == 3
    assert (await ids.get()).last_issued == 103
    seen: set[int] = set()
    async for number in ids.numbers(ahead=10):
        seen.add(number)
        if len(seen) == 25:
            break
    assert len(seen) == 25
    assert min(seen) > 103
    with pytest.raises(sidekeeper.SequenceExistsError):
        await ids.create(1)
    with pytest.raises(sidekeeper.InvalidFieldError):
        await ids.next_range(1_000_001)
    await ids.delete()
    with pytest.raises(sidekeeper.SequenceNotFoundError):
        await ids.get()


async def test_a_sequence_ends(client: aio.Client) -> None:
    ids = client.sequence("short")
    await ids.create(2**63 - 2)
    assert list(await ids.next_range(2)) == [2**63 - 2, 2**63 - 1]
    with pytest.raises(sidekeeper.SequenceExhaustedError):
        await ids.next()


async def test_members_see_each_other(client: aio.Client) -> None:
    views: list[sidekeeper.GroupView] = []

    async def observe() -> None:
        async for view in client.watch_group("workers"):
            views.append(view)

    observing = asyncio.create_task(observe())
    async with await client.join("workers", "a", metadata={"port": "1"}) as membership:
        assert membership.valid
        assert membership.incarnation > 0
        with pytest.raises(sidekeeper.MemberExistsError):
            await client.join("workers", "a")
        await membership.update({"port": "2"})
        group = await client.get_group("workers")
        assert group.members["a"].metadata == {"port": "2"}
    async with asyncio.timeout(PATIENT):
        while not views or views[-1].members or not any(view.members for view in views):
            await asyncio.sleep(0.01)
    observing.cancel()


async def test_a_member_that_is_replaced_is_told(client: aio.Client) -> None:
    first = await client.join("workers", "a")
    async with await client.join("workers", "a", on_conflict=sidekeeper.OnConflict.REPLACE, wait=PATIENT):
        await asyncio.wait_for(first.wait_ended(), PATIENT)
        assert first.error is not None
        assert isinstance(first.error.cause, sidekeeper.MemberReplacedError)
        with pytest.raises(sidekeeper.LostError):
            await first.leave()


async def test_who_stays_joined_joins_again(client: aio.Client, sidecar: Sidecar) -> None:
    incarnations: list[int] = []
    staying = asyncio.create_task(
        client.stay_joined("workers", "a", on_joined=lambda membership: incarnations.append(membership.incarnation))
    )
    await _until(lambda: len(incarnations) == 1)
    await asyncio.to_thread(sidecar.expire_all)
    await _until(lambda: len(incarnations) == 2)
    assert incarnations[1] != incarnations[0]
    staying.cancel()
    await asyncio.wait([staying])
    assert (await client.get_group("workers")).members == {}


async def _until(happened: object) -> None:
    assert callable(happened)
    async with asyncio.timeout(PATIENT):
        while not happened():
            await asyncio.sleep(0.01)


async def test_a_key_is_written_under_a_precondition(client: aio.Client) -> None:
    config = client.config
    first = await config.put("app/colour", "red", sidekeeper.if_missing())
    entry = await config.get("app/colour", linearizable=True)
    assert (entry.text, entry.version, entry.revision) == ("red", first.version, first.revision)
    with pytest.raises(sidekeeper.PreconditionFailedError):
        await config.put("app/colour", "blue", sidekeeper.if_missing())
    second = await config.put("app/colour", b"blue", sidekeeper.if_version(first.version))
    assert second.revision > first.revision
    commit = sidekeeper.Commit()
    commit.check("app/colour", sidekeeper.if_version(second.version))
    commit.put("app/size", "12")
    assert (await config.commit(commit))[1].revision > second.revision
    assert [each.key async for each in config.list("app")] == ["app/colour", "app/size"]
    await config.delete("app/colour", sidekeeper.if_exists())
    with pytest.raises(sidekeeper.KeyNotFoundError):
        await config.get("app/colour")


async def test_too_large_a_value_is_told(client: aio.Client) -> None:
    with pytest.raises(sidekeeper.InvalidFieldError):
        await client.config.put("large", bytes(1_000_001))


async def test_a_watch_ends_up_with_the_present_state(client: aio.Client, sidecar: Sidecar) -> None:
    await client.config.put("app/colour", "red")
    events: asyncio.Queue[sidekeeper.ConfigEvent] = asyncio.Queue()

    async def observe() -> None:
        async for event in client.config.watch_prefix("app"):
            events.put_nowait(event)

    observing = asyncio.create_task(observe())
    kinds = sidekeeper.ConfigEventKind
    state = await asyncio.wait_for(events.get(), PATIENT)
    assert state.kind is kinds.STATE
    assert [change.entry.text for change in state.changes] == ["red"]
    await client.config.put("app/colour", "blue")
    changed = await asyncio.wait_for(events.get(), PATIENT)
    assert [(change.entry.text, change.deleted) for change in changed.changes] == [("blue", False)]
    sidecar.end()
    assert (await asyncio.wait_for(events.get(), PATIENT)).kind is kinds.STALE
    sidecar.start()  # with an ensemble that is empty
    again = await asyncio.wait_for(events.get(), PATIENT)
    assert (again.kind, again.changes) == (kinds.STATE, ())
    observing.cancel()


async def test_a_view_follows_and_says_how_old_it_is(client: aio.Client, sidecar: Sidecar) -> None:
    await client.config.put("app/colour", "red")
    async with client.config.view("app") as view:
        assert view["app/colour"].text == "red"
        assert view.age() == 0
        await client.config.put("app/colour", "blue")
        async with asyncio.timeout(PATIENT):
            while view["app/colour"].text != "blue":
                await view.wait_changed()
        await client.config.delete("app/colour")
        async with asyncio.timeout(PATIENT):
            while len(view):
                await view.wait_changed()
        sidecar.end()
        async with asyncio.timeout(PATIENT):
            while view.age() == 0:
                await asyncio.sleep(0.01)


async def test_calls_that_may_be_repeated_outlast_a_restart(client: aio.Client, sidecar: Sidecar) -> None:
    sidecar.end()
    asking = asyncio.create_task(client.get_lock("orders"))
    await asyncio.sleep(0.3)
    sidecar.start()
    assert (await asyncio.wait_for(asking, PATIENT)).holders == ()


async def test_a_write_waits_for_an_ensemble_that_is_out_of_reach(client: aio.Client, sidecar: Sidecar) -> None:
    await asyncio.to_thread(sidecar.suspend, 3)
    try:
        entry = await client.config.put("app/colour", "red", sidekeeper.if_missing())
    except sidekeeper.OutcomeUnknownError:
        return  # the first attempt was under way when the ensemble fell silent
    assert (await client.config.get("app/colour")).version == entry.version
