"""The service end to end: traces in, versions out, each trace with one fate."""

from __future__ import annotations

from tests.kafka.serving import configured, deltas, fates, made, send, serving, trace, until, updates


async def test_learns_and_publishes(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    placed = await send(config, [trace(number, "support/refunds") for number in range(12)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions == 2)
    found = await updates(config)
    assert [update.version for update in found] == [1, 2, 3]
    assert found[0].learned.offsets == {f"{config.topics.traces}/0": [(0, 4)]}
    assert found[-1].bullets
    assert [each.version for each in await deltas(config)] == [1, 2, 3]
    told = await fates(config)
    assert told == {(f"{config.topics.traces}/{partition}@{offset}", "learned"): 1 for partition, offset in placed}
