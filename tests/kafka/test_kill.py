"""A service that is killed again and again ends with the same bytes as one that never was."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import anyio
import msgspec
import pytest

from stream.config import Config
from stream.kafka.messages import PARTITION_KEY
from tests.kafka.serving import configured, fates, made, read_all, send, trace, versions
from tests.kafka.working import toml, worker

PROMPTS = [f"prompt-{number}" for number in range(5)]
SIZE, LUMP, LUMPS, PARTITIONS = 4, 60, 4, 2


async def taken_over(process: asyncio.subprocess.Process) -> None:
    """Wait until it reads something."""
    assert process.stderr is not None
    while line := await process.stderr.readline():
        if b"partition taken over" in line:
            return
    raise AssertionError("the worker ended")


def lump(number: int) -> list[dict[str, Any]]:
    """Traces; those of later lumps name bullets that agents have had from earlier ones."""
    read = {} if not number else {"bullets": [f"tool-{each:05}" for each in range(1, 4)]}
    start = number * LUMP
    return [trace(each, PROMPTS[each % 5 if each % 7 else 0], **read) for each in range(start, start + LUMP)]


async def learned(config: Config, file: Path, kills: Random | None) -> None:
    """Learn lump by lump; with ``kills``, by workers that are killed at any moment."""
    await made(config, PARTITIONS)
    sent: dict[str, int] = dict.fromkeys(PROMPTS, 0)
    for number in range(LUMPS):
        traces = lump(number)
        for each in traces:
            sent[each["prompt"]] += 1
        await send(config, traces, partitions=PARTITIONS)
        expected = sum(count // SIZE for count in sent.values())
        if kills is not None:
            for _ in range(2):
                async with worker(file, stderr=asyncio.subprocess.PIPE) as process:
                    await taken_over(process)
                    await anyio.sleep(kills.random() * 0.15)
        async with worker(file):
            with anyio.fail_after(50):
                while len(await versions(config)) < expected:
                    await anyio.sleep(0.1)


async def bytes_of(config: Config) -> dict[str, Any]:
    """All that was published about prompts, under names that two runs have in common, without ``stats``."""
    found: dict[str, Any] = {}
    for role in ("updates", "deltas", "state"):
        for record in await read_all(config, getattr(config.topics, role)):
            if record.key in (None, PARTITION_KEY):
                continue
            text = record.value.decode().replace(config.topics.traces, "traces")
            value = msgspec.json.decode(text)
            value.pop("stats", None)
            value.pop("lineage", None)
            kept = found.setdefault(f"{role} {record.partition} {record.key.decode()}", [])
            if role == "state":  # compacted, so only the newest counts
                kept.clear()
            kept.append(msgspec.json.encode(value))
    return found


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_killed_service_ends_with_the_same_bytes(kafka: str, unique: str, tmp_path: Path) -> None:
    found = []
    for name, kills in (("undisturbed", None), ("killed", Random(7))):
        config = configured(kafka, f"{unique}-{name}", batch_size=SIZE)
        file = tmp_path / f"{name}.toml"
        file.write_text(toml(config))
        await learned(config, file, kills)
        assert set(map(tuple, (await fates(config)).values())) == {("learned",)}
        found.append(await bytes_of(config))
    assert found[0].keys() == found[1].keys()
    for key, records in found[0].items():
        assert found[1][key] == records, key
    assert any(b'"helpful":' in each for records in found[0].values() for each in records)
