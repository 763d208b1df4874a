"""Whether a broker answers: a metadata request, in a few bytes, by hand.

A client of aiokafka's would log every attempt that fails, and a broker that starts is asked until it answers.
"""

from __future__ import annotations

import struct

import anyio
from anyio.abc import ByteStream

_METADATA, _VERSION, _CORRELATION = 3, 1, 7
_TIMEOUT = 2.0


async def answers(address: str) -> bool:
    """Ask for the cluster's metadata without topics (Kafka protocol, Metadata v1): is a broker in it?

    :param address: ``host:port``.
    """
    host, _, port = address.rpartition(":")
    client = b"tracecomb"
    # The empty list of topics asks for none of them; null would ask for all.
    request = struct.pack(f">hhih{len(client)}si", _METADATA, _VERSION, _CORRELATION, len(client), client, 0)
    try:
        with anyio.fail_after(_TIMEOUT):
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(struct.pack(">i", len(request)) + request)
                (size,) = struct.unpack(">i", await _exactly(stream, 4))
                correlation, brokers = struct.unpack(">ii", (await _exactly(stream, size))[:8])
    except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError, struct.error):
        return False
    return bool(correlation == _CORRELATION and brokers > 0)


async def _exactly(stream: ByteStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await stream.receive(count - len(data))
    return data
