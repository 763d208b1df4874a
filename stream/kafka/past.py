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

KEPT = 4_000
"""Versions whose bullets are kept, of all prompts of a partition: more than the records of a chunk can name."""

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

    def put(self, prompt: str, version: int, bullets: Sequence[Bullet]) -> None:
        """Keep the bullets of a version."""
        self._found[prompt, version] = bullets
        self._found.move_to_end((prompt, version))
        if len(self._found) > self._kept:
            self._found.popitem(last=False)

    def bullets(self, prompt: str, version: int) -> Sequence[Bullet]:
        """The bullets of a version; none where there is no such version."""
        return self._found.get((prompt, version), ())

    def missing(self, traces: Sequence[Trace], lanes: Lanes) -> Wanted:
        """The versions that traces name and that neither their prompts' states hold nor we.

        A state may have moved on by the time that its trace is fed, so what it holds is kept here too.
        """
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for trace in traces:
            version = trace.version
            if version is None or trace.bullets is not None or trace.lineage != self._lineage:
                continue
            if (trace.prompt, version) in self._found:
                self._found.move_to_end((trace.prompt, version))
                continue
            state = lanes.lane(trace.prompt).state
            held = next((each for each in (*state.older, state.now) if each.version == version), None)
            if held is not None:
                self.put(trace.prompt, version, held.bullets)
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
                self.put(prompt, version, bullets or ())
