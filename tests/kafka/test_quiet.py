"""A client's log while its broker is away: each message once in a while, and how many were held back."""

from __future__ import annotations

import logging
from typing import Any

from stream.kafka.quiet import Seldom


def record(at: float, message: str, *arguments: Any, name: str = "aiokafka.conn") -> logging.LogRecord:
    made = logging.LogRecord(name, logging.WARNING, "conn.py", 1, message, arguments, None)
    made.created = at
    return made


def test_one_message_is_heard_once_in_a_while_whatever_its_arguments() -> None:
    seldom = Seldom(10)
    heard = []
    for at in range(25):
        one = record(float(at), "Unable connect to node with id %s", at)
        if seldom.filter(one):
            heard.append((at, one.getMessage()))
    assert heard == [
        (0, "Unable connect to node with id 0"),
        (10, "Unable connect to node with id 10 (and 9 more like it)"),
        (20, "Unable connect to node with id 20 (and 9 more like it)"),
    ]


def test_other_messages_and_other_loggers_are_heard_at_once() -> None:
    seldom = Seldom(10)
    assert seldom.filter(record(0, "a"))
    assert seldom.filter(record(1, "b"))
    assert seldom.filter(record(2, "a", name="aiokafka.cluster"))
    assert not seldom.filter(record(3, "a"))
    assert seldom.filter(record(-100, "a")), "a clock that was put back silences nothing"


def test_messages_without_end_are_forgotten() -> None:
    seldom = Seldom(10)
    assert all(seldom.filter(record(0, f"node {number} is gone")) for number in range(5_000))
    assert len(seldom._told) <= 1_000
