"""The transactional producer of a partition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from stream.kafka.stopping import start, stop

NEVER = (
    InvalidTopicError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
"""Errors that trying again does not mend."""

TRANSACTION_MS = 10_000
_BACKOFF_MS = 5  # a transaction right after another is told to wait; at aiokafka's 100 ms that costs two thirds
_BATCH_BYTES = 256 << 10
_STOP_SECONDS = 5.0


def transactional_id(group: str, topic: str, partition: int) -> str:
    """The one name that fences whoever owned the partition before."""
    return f"tracecomb/{group}/{topic}/{partition}"


@asynccontextmanager
async def producer(
    connection: Mapping[str, Any], id: str, *, max_bytes: int, start_seconds: float = 60.0
) -> AsyncIterator[AIOKafkaProducer]:
    """A started producer: whoever used ``id`` before is fenced, and its transaction ended.

    :param max_bytes: of one record, uncompressed.
    :raises TimeoutError: when the broker did not let it start in time.
    """
    made = AIOKafkaProducer(
        **connection,
        transactional_id=id,
        transaction_timeout_ms=TRANSACTION_MS,
        acks="all",
        enable_idempotence=True,
        compression_type="zstd",
        max_request_size=max_bytes,
        max_batch_size=min(_BATCH_BYTES, max_bytes),
        retry_backoff_ms=_BACKOFF_MS,
    )
    try:
        with anyio.fail_after(start_seconds):
            await _started(made)
        yield made
    finally:
        _hear(made)
        if not await stop(made, _STOP_SECONDS):
            with anyio.move_on_after(_STOP_SECONDS, shield=True):
                await made.client.close()


async def _started(made: AIOKafkaProducer) -> None:
    try:
        await start(made)
    except AssertionError as error:  # aiokafka's own, while it knows no broker that it could ask
        raise KafkaConnectionError(str(error)) from error


def _hear(made: AIOKafkaProducer) -> None:
    """Take note of how the last transaction ended, or Python logs that nobody did: a failed send is what we act on."""
    waiter = made._txn_manager._transaction_waiter
    if waiter is not None and waiter.done() and not waiter.cancelled():
        waiter.exception()
