"""What the benchmarks on Kafka send, and how their section reads; the measurements need a broker and quiet."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec

from operators import Trace
from stream.kafka.sift import trace_of
from tests.bench.kafka.failover import Failover
from tests.bench.kafka.latency import Latency
from tests.bench.kafka.load import PROMPTS, WINDOW, mixed, steady, steady_windows, whole
from tests.bench.kafka.measured import Measured
from tests.bench.kafka.rates import OURS, RAW, RAW_TRANSACTIONAL
from tests.bench.kafka.report import Load, Results, section
from tests.bench.kafka.waiting import Waiting


def test_every_trace_is_one_of_ours_and_has_its_size() -> None:
    for size in (300, 1_000, 10_000):
        for sendable in mixed(200, size):
            trace = trace_of(sendable.value)
            assert isinstance(trace, Trace)
            assert trace.prompt == sendable.prompt
            assert len(sendable.value) == size


def test_mixed_traces_fill_whole_windows() -> None:
    for count in (1, 5_000, 19_000, 40_000):
        assert whole(count) > 0
        assert whole(count) % (PROMPTS * WINDOW) == 0
    assert set(Counter(each.prompt for each in mixed(5_000, 300)).values()) == {WINDOW}


def test_steady_windows_close_by_turns() -> None:
    counts: Counter[str] = Counter()
    closed = []
    for number, each in enumerate(steady(2, 300)):
        counts[each.prompt] += 1
        if counts[each.prompt] % WINDOW == 0:
            closed.append(number)
    assert len(closed) == steady_windows(2)
    assert max(after - before for before, after in pairwise(closed)) <= 2 * WINDOW


def test_the_section_tells_the_share_of_the_raw_loop() -> None:
    def runs(seconds: float) -> list[Measured]:
        return [Measured(1_000, seconds, seconds / 2, 50.0)]

    rates = {1_000: {RAW: runs(0.5), RAW_TRANSACTIONAL: runs(1.0), OURS: runs(1.6)}}
    waiting = Waiting(1_000, 60.0, [(0.0, 60.0), (1.0, 80.0), (2.0, 81.0)], 82.0)
    latency = Latency(0.01, 0.05, 100, 2_500.0)
    text = section(Results(rates, latency, Failover([11.0], [10.0]), waiting, Load(0.5, 2.0), 1))
    assert f"| 1 kB | {OURS} | **625** (625 to 625) | 62% | 800.0 | 50 |" in text
    assert "met at 1 kB (62%)" in text
    assert "| 80 to 81 MB |" in text
    assert "| 11.0 s |" in text
    assert msgspec.json.decode(msgspec.json.encode(rates[1_000][RAW][0]), type=Measured) == rates[1_000][RAW][0]
