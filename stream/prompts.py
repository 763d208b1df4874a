"""Which prompt a trace belongs to."""

from __future__ import annotations

from operators.values import Trace
from stream.config import Replay, fill
from stream.names import canonical

DEFAULT_PROMPT = "default"


class Prompts:
    """The configured way from a trace to its prompt: forced, its own, the template's, or ``default``."""

    def __init__(self, given: Replay) -> None:
        self._forced = _writable(given.force_prompt)
        self._template = _writable(given.prompt)

    def of(self, trace: Trace) -> str:
        """The prompt that ``trace`` belongs to."""
        if self._forced is not None:
            return fill(self._forced, trace.agent) or DEFAULT_PROMPT
        if trace.prompt:
            return trace.prompt
        return (fill(self._template, trace.agent) if self._template else "") or DEFAULT_PROMPT


def _writable(template: str | None) -> str | None:
    """A template that JSON can hold: the bytes of a command's argument may be no text."""
    return None if template is None else canonical(template).encode("utf-8", "replace").decode()
