"""A real broker for tests: one a session, and one of its own for a test that abuses it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from secrets import token_hex
from typing import Protocol

import anyio
import pytest

from stream.kafka.broker import Broker, Missing, jars, java
from stream.kafka.tables import Kafka, Topics
from stream.kafka.topics import create
from tests.conftest import require

GIVEN = os.environ.get("TRACECOMB_TEST_KAFKA", "")
STARTED = {"own_broker", "startable"} if GIVEN else {"kafka", "own_broker", "startable"}
"""Fixtures that start a broker, or stand for a test that does."""

_TIMEOUT = 180
"""Seconds for a test that starts a broker: on a busy machine that alone takes 30 of them."""

_missing: list[str] = []


def starts_a_broker(item: pytest.Item) -> bool:
    return not STARTED.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the broker's jars before any test's time runs: the first time ever it may take a minute."""
    if session.config.option.collectonly or not any(map(starts_a_broker, session.items)):
        return
    for item in session.items:
        if starts_a_broker(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT))
    try:
        java()
        jars()
    except (Missing, OSError) as error:
        _missing.append(" ".join(str(error).split()))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say once, and not for each test, why there is no broker."""
    if starts_a_broker(item):
        require(f"a Kafka broker ({'; '.join(_missing)})", not _missing)


@pytest.fixture
def startable() -> None:
    """For tests that start a broker themselves."""


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a broker that all tests share: no test may stop it, or count on being alone.

    ``TRACECOMB_TEST_KAFKA=host:port`` names one to use instead.
    """
    if GIVEN:
        yield GIVEN
        return
    broker = Broker()
    anyio.run(broker.start)
    yield broker.bootstrap
    anyio.run(broker.stop)


@pytest.fixture
async def own_broker() -> AsyncIterator[Broker]:
    """A broker that only this test has, to stop, freeze, kill or restart."""
    async with Broker() as broker:
        yield broker


class MakeTopics(Protocol):
    """Makes topics that no other test has; see :func:`make_topics`."""

    async def __call__(self, bootstrap: str, partitions: int = ...) -> Topics: ...


@pytest.fixture
def make_topics(unique: str) -> MakeTopics:
    """Make all topics of the service under names of this test's own; the one of traces takes any timestamp."""

    async def make(bootstrap: str, partitions: int = 3) -> Topics:
        topics = Topics(**{role: f"{unique}-{role}" for role in Topics.__struct_fields__})
        # The service must bear a timestamp far in the future, which brokers from 4.0 on refuse unless told.
        more = {"traces": {"message.timestamp.after.max.ms": str(2**63 - 1)}}
        await create(Kafka(bootstrap=bootstrap), topics, partitions, more=more)
        return topics

    return make


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A name for topics and groups that no other test, nor another run on the same broker, has."""
    return f"{request.node.originalname[:40]}-{token_hex(4)}"
