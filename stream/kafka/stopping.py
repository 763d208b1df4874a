"""Stopping aiokafka's clients: within seconds, and without the cancellations of their own tasks.

A consumer that is stopped while its broker is down raises the cancellation of a fetch that was waiting to be tried
again. Nobody cancelled us then, yet a task group that such a thing gets out of ends, with all its tasks and no error.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio


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
