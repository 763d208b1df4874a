"""The bullets of versions that a prompt's state does not hold any more, for the votes of traces that had read them.

Looked up before a trace is fed and at most once each, so a trace that is read again after a crash votes as it did.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog

from operators.state import PromptState
from operators.values import Bullet, Trace

log = structlog.get_logger()

KEPT = 50_000
"""How many bullets are kept, of all versions of a partition's prompts: some 10 MB where no two share one."""

Wanted = Mapping[str, set[int]]
"""Versions by prompt."""

Find = Callable[[Wanted], Awaitable[Mapping[tuple[str, int], Sequence[Bullet]]]]


class Lane(Protocol):
    """A prompt under way."""

    state: PromptState


class Lanes(Protocol):
    """Knows each prompt's lane."""

    def lane(self, prompt: str) -> Lane:
        """The lane of a prompt."""
        ...


class Past:
    """Bullets by prompt and version, those that were needed last.

    :param find: looks versions up; it leaves out those that there are not.
    """

    def __init__(self, lineage: str, find: Find, kept: int = KEPT) -> None:
        self._lineage = lineage
        self._find = find
        self._kept = kept
        self._found: OrderedDict[tuple[str, int], Sequence[Bullet]] = OrderedDict()
        self._count = 0
        self._named: dict[tuple[str, int], Sequence[Bullet]] = {}  # by the traces that are about to be fed

    def put(self, prompt: str, version: int, bullets: Sequence[Bullet]) -> None:
        """Keep the bullets of a version."""
        self._count += _weight(bullets) - _weight(self._found.pop((prompt, version), None))
        self._found[prompt, version] = bullets
        while self._count > self._kept:
            self._count -= _weight(self._found.popitem(last=False)[1])

    def bullets(self, prompt: str, version: int) -> Sequence[Bullet]:
        """The bullets of a version that a trace about to be fed names; none where there is no such version."""
        return self._named.get((prompt, version), ())

    def missing(self, traces: Sequence[Trace], lanes: Lanes) -> Wanted:
        """The versions that traces about to be fed name, and that neither their prompts' states hold nor we.

        A state may have moved on by the time that its trace is fed, so what it holds is kept here too.
        """
        self._named = {}
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for trace in traces:
            version = trace.version
            if version is None or trace.bullets is not None or trace.lineage != self._lineage:
                continue
            pair = trace.prompt, version
            if pair in self._named:
                continue
            if pair in self._found:
                self._found.move_to_end(pair)
                self._named[pair] = self._found[pair]
                continue
            state = lanes.lane(trace.prompt).state
            held = next((each for each in (*state.older, state.now) if each.version == version), None)
            if held is not None:
                self._named[pair] = held.bullets
                self.put(*pair, held.bullets)
            elif 0 < version <= state.now.version:
                wanted[trace.prompt].add(version)
        return wanted

    async def find(self, wanted: Wanted) -> None:
        """Look versions up; one that is not there is known to show nothing from then on."""
        found = await self._find(wanted)
        for prompt, versions in wanted.items():
            for version in sorted(versions):
                bullets = found.get((prompt, version))
                if bullets is None:
                    log.warning("a trace names a version that is not there", prompt=prompt, version=version)
                self._named[prompt, version] = bullets or ()
                self.put(prompt, version, bullets or ())


def _weight(bullets: Sequence[Bullet] | None) -> int:
    return 0 if bullets is None else max(len(bullets), 1)
