"""The service end to end: traces in, versions out, each trace with exactly one fate."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec.structs import replace

from stream.config import Rejects
from stream.kafka.errors import WrongTopics
from stream.kafka.homes import home
from stream.kafka.service import Service
from stream.replay import TooManyRejects
from tests.kafka.raw import Raw, produce_raw
from tests.kafka.serving import (
    configured,
    fates,
    made,
    published,
    read_all,
    rejects,
    send,
    serving,
    taken,
    trace,
    until,
    updates,
    versions,
)

PROMPT = "support/refunds"


async def test_learns_and_publishes(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    placed = await send(config, [trace(number, PROMPT) for number in range(12)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 2)
    found = await updates(config)
    assert [update.version for update in found] == [1, 2, 3]  # the last is what the drain closed
    assert found[0].learned.offsets == {f"{config.topics.traces}/0": [(0, 4)]}
    assert found[-1].bullets
    assert len({update.lineage for update in found}) == 1
    assert [each.version for each in await versions(config)] == [1, 2, 3]
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_goes_on_where_another_left(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config, 3)
    prompts = [f"prompt-{number}" for number in range(7)]
    placed = []
    for start in range(0, 200, 50):
        placed += await send(
            config, [trace(number, prompts[number % 7]) for number in range(start, start + 50)], partitions=3
        )
        async with serving(config) as service:
            await until(lambda: service.tally.learned >= 35)
    assert await fates(config) == {place: ["learned"] for place in placed}
    for prompt in prompts:
        mine = [each.version for each in await versions(config) if each.prompt == prompt]
        assert mine == list(range(1, len(mine) + 1))


async def test_report_08_windows_close_by_time(kafka: str, unique: str) -> None:
    """Report 8: the last window of an idle stream never closes (quix-streams 790)."""
    config = configured(kafka, unique, learning={"max_wait": 1.0}, batch_size=100)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(3)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions)
    assert (await versions(config))[0].stats["closed_by"] == "time"


async def test_a_trace_sent_twice_teaches_once(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    once = [trace(number, PROMPT) for number in range(5)]
    placed = await send(config, [*once[:3], once[0], *once[3:]])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    again = await send(config, [*once, trace(5, PROMPT)])  # told apart by the state, after a restart
    async with serving(config) as service:
        await until(lambda: service.tally.duplicates >= 5)
    found = await fates(config)
    assert [found[place] for place in placed] == [["learned"]] * 3 + [["duplicate"]] + [["learned"]] * 2
    assert [found[place] for place in again] == [["duplicate"]] * 5 + [["learned"]]
    assert len(found) == 12


async def test_only_the_last_thousand_ids_are_remembered(kafka: str, unique: str) -> None:
    config = configured(kafka, unique, batch_size=201)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(1_005)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 5)
    again = await send(config, [trace(0, PROMPT), trace(4, PROMPT), trace(5, PROMPT), trace(1_004, PROMPT)])
    async with serving(config) as service:
        await until(lambda: service.tally.duplicates >= 1)
    found = await fates(config)
    # The first five had been pushed out; each that was taken again pushed out the next.
    assert [found[place] for place in again] == [["learned"]] * 3 + [["duplicate"]]


async def test_poison_among_good_traces(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    topic = config.topics.traces
    good = await send(config, [trace(number, PROMPT) for number in range(3)])
    bad = await send(config, [b"{not json", b"", b'{"steps": 3}', b'{"a": 1}', b"[1, 2]", b"\x89PNG", b"[" * 5_000])
    empty = await send(config, [b"[]"])
    key = PROMPT.encode()
    first = await produce_raw(
        kafka,
        topic,
        0,
        [
            Raw(key, None),
            Raw(None, None),
            Raw(b"\xff\xfe", b'{"steps": [{"content": "no prompt"}]}'),
            Raw(None, b'{"id": "n", "steps": [{"content": "no prompt, no key"}]}'),
        ],
        codec=4,
    )
    good += await send(config, [trace(number, PROMPT) for number in range(3, 5)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1 and service.tally.rejected >= 10)
    found = await fates(config)
    assert [found[place] for place in good] == [["learned"]] * 5
    assert [found[place] for place in bad] == [["rejected"]] * 7
    assert [found[place] for place in empty] == [["skipped"]]
    assert [found[0, first + at] for at in range(3)] == [["rejected"]] * 3
    assert found[0, first + 3] == ["learned"]  # its prompt is `default`, whose home is the only partition
    told = {each.offset: each for each in await rejects(config)}
    assert told[bad[0][1]].value == b"{not json"
    assert told[bad[0][1]].topic == topic
    assert "invalid JSON" in told[bad[0][1]].reason
    assert (told[first].key, told[first].value) == (key, None)


async def test_a_header_key_that_is_no_text_costs_none_of_its_neighbours(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config, 2)
    prompts = [next(f"p{n}" for n in range(99) if home(f"p{n}".encode(), "murmur2", 2) == at) for at in (0, 1)]
    values = [msgspec.json.encode(trace(number, prompts[0])) for number in range(11)]
    headers = [[(b"\xff\xfe", b"x")] if number == 5 else [] for number in range(11)]
    batch = [Raw(prompts[0].encode(), value, header) for value, header in zip(values, headers, strict=True)]
    await produce_raw(kafka, config.topics.traces, 0, batch, codec=4)
    others = await send(config, [trace(number, prompts[1]) for number in range(100, 110)], partitions=2)
    more = await send(config, [trace(number, prompts[0]) for number in range(11, 15)], partitions=2)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 5)
    found = await fates(config)
    assert found == {place: ["learned"] for place in [*[(0, at) for at in range(11)], *others, *more]}


async def test_a_trace_in_the_wrong_partition_is_foreign(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config, 2)
    stray = next(f"p{n}" for n in range(99) if home(f"p{n}".encode(), "murmur2", 2) == 1)
    await produce_raw(kafka, config.topics.traces, 0, [Raw(b"k", msgspec.json.encode(trace(1, stray)))])
    async with serving(config) as service:
        await until(lambda: service.tally.rejected)
    (told,) = await rejects(config)
    assert told.reason.startswith(f"foreign: prompt '{stray}' is at home in partition 1")


async def test_too_many_rejects_stop_the_service(kafka: str, unique: str) -> None:
    config = replace(configured(kafka, unique), rejects=Rejects(run=20))
    await made(config)
    await send(config, [b"no trace"] * 30)
    with pytest.raises(TooManyRejects, match=r"20 records in a row were rejected, the last at .* offset 19"):
        await Service(config).run()


async def test_wrong_topics_are_refused(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    with pytest.raises(WrongTopics, match="topics create"):
        await Service(config).run()
    assert not [record for record in await _topics(kafka) if record.startswith(unique)]  # looking made none


async def _topics(bootstrap: str) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def test_a_group_may_start_at_the_end(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    config = replace(config, kafka=replace(config.kafka, start="latest"))
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(5)])
    async with serving(config) as service:
        await until(lambda: published(service))
    # Where it began is committed, so what comes while nobody runs is not passed over.
    placed = await send(config, [trace(number, PROMPT) for number in range(5, 10)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_bounds_pause_reading_and_starve_nobody(kafka: str, unique: str) -> None:
    config = configured(kafka, unique, batch_size=1_000, traces=60)
    await made(config, 2)
    prompts = [f"prompt-{number}" for number in range(8)]
    placed = await send(config, [trace(number, prompts[number % 8]) for number in range(4_000)], partitions=2)
    async with serving(config) as service:
        await until(lambda: service.tally.learned + taken(service) == 4_000)
        assert service.tally.early
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_a_quiet_partition_commits_past_markers(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(5)])
    async with AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=f"{unique}-other") as other:
        await other.begin_transaction()
        await (await other.send(config.topics.traces, b"never", b"k", 0))
        await other.abort_transaction()
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        async with serving(config) as service:
            await until(lambda: service.tally.versions >= 1)
            tp = TopicPartition(config.topics.traces, 0)
            with anyio.fail_after(20):
                while True:
                    found = await admin.list_consumer_group_offsets(config.kafka.group, partitions=[tp])
                    if found[tp].offset == 7:  # five traces, what was aborted, and the marker
                        break
                    await anyio.sleep(0.1)
    finally:
        await admin.close()
    assert len(await read_all(config, config.topics.rejects)) == 0


async def test_thousands_of_repeats_are_told_in_records_that_fit(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    once = [trace(number, PROMPT, id=f"{number}-" + "x" * 490) for number in range(5)]
    placed = await send(config, [*once, *(once[number % 5] for number in range(2_500))])
    async with serving(config) as service:
        await until(lambda: service.tally.duplicates >= 2_500)
    told = await fates(config)
    assert [told[place] for place in placed] == [["learned"]] * 5 + [["duplicate"]] * 2_500
    assert max(len(record.value) for record in await read_all(config, config.topics.deltas)) < 1 << 20


async def test_names_that_would_fill_our_records_are_rejected(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT, **{field: "x" * 501}) for number, field in enumerate(("id", "session"))])
    async with serving(config) as service:
        await until(lambda: service.tally.rejected >= 2)
    assert {each.reason for each in await rejects(config)} == {
        "its id, prompt or session is longer than 500 characters"
    }
