"""Stopping aiokafka's clients whatever state their broker is in."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio
from aiokafka.errors import KafkaError

_SECONDS = 5.0


async def stop(client: Any) -> None:
    """Stop a consumer or a producer, for as long as that may take.

    A consumer that is stopped while its broker is down raises a cancellation that is nobody's, its fetcher's own; a
    task group would end by that without a word.
    """
    with anyio.move_on_after(_SECONDS, shield=True):
        with suppress(asyncio.CancelledError, KafkaError):
            await client.stop()
