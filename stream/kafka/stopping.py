"""Starting and stopping aiokafka's clients: within seconds, and without the cancellations of their own tasks.

A client that is cancelled while it starts forgets the connection that it had just made, so a start is let come to its
end. A consumer that is stopped while its broker is down raises the cancellation of a fetch that was waiting to be tried
again. Nobody cancelled us then, yet a task group that such a thing gets out of ends, with all its tasks and no error.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

_GRACE_SECONDS = 2.0


async def start(client: Any) -> None:
    """Start a consumer or a producer; in a task that is cancelled it may still take a moment, and is to be stopped.

    :raises KafkaError: as its own start does.
    """
    starting = asyncio.ensure_future(client.start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait({starting}, timeout=_GRACE_SECONDS)
            if not starting.done():
                starting.cancel()
                await asyncio.wait({starting}, timeout=_GRACE_SECONDS)
        if starting.done() and not starting.cancelled():
            starting.exception()  # or it would be told that nobody asked for it
        raise


async def stop(client: Any, seconds: float) -> bool:
    """Stop a consumer or a producer, also in a task that is cancelled; return whether it did within ``seconds``."""
    with anyio.move_on_after(seconds, shield=True) as scope:
        try:
            await client.stop()
        except asyncio.CancelledError:
            if scope.cancel_called:
                raise
            # What comes after its tasks in its own stop.
            await (client._client if hasattr(client, "_client") else client.client).close()
    return not scope.cancelled_caught
