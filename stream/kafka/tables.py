"""The configuration's tables ``[kafka]``, ``[topics]`` and ``[service]``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import astuple

_SERVER = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):[0-9]{1,5}"
SERVERS = re.compile(f"{_SERVER}(?:,{_SERVER})*")
"""``host:port``, or several with commas between; an IPv6 address stands in brackets."""

_Text = Annotated[str, Meta(min_length=1, max_length=249, description="a text of 1 to 249 characters")]
# What Kafka allows.
_Topic = Annotated[
    str,
    Meta(
        pattern=r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$",
        description="a topic's name, another one for each: 1 to 249 of letters, digits, dot, dash and underscore",
    ),
]


class Kafka(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[kafka]``: the cluster, and how the service is a member of it.

    :param bootstrap: servers to ask first; the default is where ``tracecomb kafka start`` listens.
    :param group: the consumer group, whose members share the partitions.
    :param partitioner: how producers of traces choose a partition by key: ``murmur2`` is the Java client's and
        aiokafka's, ``crc32`` librdkafka's default.
    :param start: where a group begins that has committed nothing yet.
    :param session_timeout: seconds after which a worker that sends no heartbeat has lost its partitions.
    :param max_message_bytes: the largest record that is written, before compression; every topic of ours must take it.
    """

    bootstrap: Annotated[str, Meta(description="host:port, or several with commas between")] = "127.0.0.1:9092"
    group: _Text = "tracecomb"
    partitioner: Annotated[Literal["murmur2", "crc32"], Meta(description='"murmur2" or "crc32"')] = "murmur2"
    start: Annotated[Literal["earliest", "latest"], Meta(description='"earliest" or "latest"')] = "earliest"
    session_timeout: Annotated[float, Meta(ge=6, le=1_800, description="seconds, from 6 to 1,800")] = 10.0
    max_message_bytes: Annotated[
        int, Meta(ge=1 << 17, le=1 << 26, description="a whole number of bytes from 131,072 to 67,108,864")
    ] = 8 << 20

    def __post_init__(self) -> None:
        """Refuse what is no list of servers.

        :raises ValueError: naming the key first.
        """
        if not is_servers(self.bootstrap):
            raise ValueError("bootstrap: not host:port")


class Topics(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[topics]``: the names of the topics that traces come from and everything else goes to."""

    traces: _Topic = "agent-traces"
    updates: _Topic = "prompt-updates"
    deltas: _Topic = "prompt-deltas"
    state: _Topic = "prompt-state"
    rejects: _Topic = "trace-rejects"
    controls: _Topic = "prompt-controls"

    def __post_init__(self) -> None:
        """Refuse one name for two topics.

        :raises ValueError: naming the key first.
        """
        names = astuple(self)
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            last = max(at for at, each in enumerate(names) if each == name)
            raise ValueError(f"{self.__struct_fields__[last]}: another topic's name")


class Service(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[service]``: how ``tracecomb run`` learns.

    :param prompt: the prompt of traces that name none; without it the record's key names it.
    :param batch_size: traces a window; with ``auto`` the controller chooses.
    :param seed: of the shuffle.
    :param in_flight: reflections under way at once, of all prompts together.
    :param straggler_deadline: seconds that a closed window waits for its reflections.
    :param traces: traces that may be taken and not done, and ``bytes`` of them; reading pauses there. Each that waits
        for its reflection takes some 10 kB, so the default keeps a worker below 300 MB.
    :param drain: seconds that a stop may take to publish what is ready.
    :param on_loss: what to do when records expired before they were read.
    """

    prompt: Annotated[
        str | None,
        Meta(description="a prompt's name, in which {agent} stands for the trace's agent and {{ for a brace"),
    ] = None
    batch_size: Annotated[
        Literal["auto"] | Annotated[int, Meta(ge=1, le=10_000)],
        Meta(description='"auto" or a whole number from 1 to 10,000'),
    ] = "auto"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number from 0")] = 0
    in_flight: Annotated[int, Meta(ge=1, le=100_000, description="a whole number from 1 to 100,000")] = 64
    straggler_deadline: Annotated[float, Meta(gt=0, le=604_800, description="seconds, over 0, at most a week")] = 120.0
    traces: Annotated[int, Meta(ge=1, le=10_000_000, description="a whole number from 1 to 10,000,000")] = 25_000
    bytes: Annotated[int, Meta(ge=1 << 20, le=1 << 40, description="a whole number of bytes, 1 MiB or more")] = 64 << 20
    drain: Annotated[float, Meta(gt=0, le=3_600, description="seconds, over 0, at most 3,600")] = 20.0
    on_loss: Annotated[Literal["stop", "continue"], Meta(description='"stop" or "continue"')] = "stop"


def is_servers(text: str) -> bool:
    """Whether a text is ``host:port``, or several with commas between."""
    return SERVERS.fullmatch(text) is not None and all(
        0 < int(server.rpartition(":")[2]) < 65_536 for server in text.split(",")
    )
