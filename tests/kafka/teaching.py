"""A method whose lessons are as long as a test likes: a trace's task says what it teaches."""

from __future__ import annotations

from collections.abc import Sequence

from operators.modelfree import ModelFree
from operators.values import Bullet, Curation, Given, Insight, Reflection, Trace


class Teaching:
    """Teaches what a trace's task says, ``LESSON*BYTES`` with blanks between, without any curator's judgement."""

    name = "teaching"
    reduces = False

    def __init__(self) -> None:
        self._method = ModelFree()

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        """One insight for each lesson."""
        lessons = [lesson.split("*") for lesson in trace.task.split()]
        insights = [
            Insight(number, "LESSONS", f"{name} ".ljust(int(bytes), name[0]), name)
            for number, (name, bytes) in enumerate(lessons, 1)
        ]
        return Reflection(trace.id, trace.session, tuple(insights))

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        """The plain union."""
        return self._method.curate(given, base)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        """Nothing: there is no level 2."""
        return Curation()
