"""Stopping a client ends neither the task that does it nor those beside it."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from stream.kafka.stopping import start, stop


class Client:
    """A consumer whose stop raises, hangs, or works."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.closed = False
        self._client = self

    async def stop(self) -> None:
        if self.how == "hangs":
            await anyio.sleep_forever()
        if self.how == "cancels":
            fetch = asyncio.ensure_future(asyncio.sleep(60))
            await asyncio.sleep(0)
            fetch.cancel()
            await fetch
        if self.how == "fails":
            raise OSError("no")

    async def close(self) -> None:
        self.closed = True


async def test_a_cancellation_that_is_nobodys_stays_inside() -> None:
    reached = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 0.05)
        client = Client("cancels")
        assert await stop(client, 5)
        assert client.closed
        await anyio.sleep(0.01)
        reached.append(True)
    assert reached


async def test_stop_within_seconds() -> None:
    assert await stop(Client("works"), 5)
    assert not await stop(Client("hangs"), 0.01)
    with pytest.raises(OSError, match="no"):
        await stop(Client("fails"), 5)


@pytest.mark.parametrize("how", ["works", "cancels", "hangs"])
async def test_stop_in_a_task_that_is_cancelled(how: str) -> None:
    client, stopped = Client(how), []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(await stop(client, 0.05))
    assert stopped == [how != "hangs"]
    assert scope.cancelled_caught


class Starting:
    """A client whose start makes a connection, and forgets it when it is cancelled half way."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.state = "new"

    async def start(self) -> None:
        self.state = "connected"
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.state = "leaked"
            raise
        self.state = "started"


async def test_a_start_that_is_cancelled_comes_to_its_end() -> None:
    client = Starting(0.05)
    with anyio.move_on_after(0.01) as scope:
        await start(client)
    assert scope.cancelled_caught
    assert client.state == "started"


async def test_a_start_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream.kafka.stopping._GRACE_SECONDS", 0.01)
    client = Starting(60)
    with anyio.move_on_after(0.01) as scope:
        await start(client)
    assert scope.cancelled_caught
    assert client.state == "leaked"


async def test_what_a_start_raises_is_raised() -> None:
    class Fails:
        async def start(self) -> None:
            raise OSError("no broker")

    with pytest.raises(OSError, match="no broker"):
        await start(Fails())
