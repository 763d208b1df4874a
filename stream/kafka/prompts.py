"""The prompts of a partition: their states as they were read, decoded when one is first needed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from operators.overload import Overload
from operators.snapshot import load
from operators.state import PromptState
from stream.kafka.errors import OtherLineage, PartitionHalted
from stream.kafka.messages import PromptRecord, decode_prompt_record, unpack
from stream.kafka.recent import Recent


class Prompts:
    """What is known of each prompt when a partition is taken over.

    :param states: undecoded, by key.
    :param versions: of the newest updates, by key; a state must be of the same one.
    :param restore: told of each prompt's clamp.
    """

    def __init__(
        self,
        states: dict[bytes, bytes],
        versions: dict[bytes, int],
        lineage: str,
        restore: Callable[[str, Overload], None],
    ) -> None:
        self._states = states
        self._versions = versions
        self._lineage = lineage
        self._restore = restore
        self._loaded: dict[str, tuple[PromptState, Recent]] = {}
        self._recent: dict[str, Recent] = {}
        self._sizes: dict[str, int] = {}

    def state(self, prompt: str) -> PromptState:
        """The state that the prompt's next version starts from."""
        if prompt not in self._loaded:
            self._load(prompt)
        return self._loaded.pop(prompt)[0]

    def recent(self, prompt: str) -> Recent:
        """The prompt's last trace ids."""
        found = self._recent.get(prompt)
        return self._load(prompt) if found is None else found

    def size(self, prompt: str) -> int:
        """The bytes that the prompt's state had when it was read; 0 where there was none."""
        self.recent(prompt)
        return self._sizes[prompt]

    @property
    def undecoded(self) -> int:
        """How many states were read and not needed yet."""
        return len(self._states)

    def _load(self, prompt: str) -> Recent:
        key = prompt.encode()
        data = self._states.pop(key, None)
        self._sizes[prompt] = len(data or b"")
        if data is None:
            state, recent = PromptState(prompt), Recent()
        else:
            record = self._decoded(prompt, data)
            state, recent = load(record.snapshot), Recent(unpack(record.recent))
            if record.overload is not None:
                self._restore(prompt, record.overload)
        if state.now.version != self._versions.get(key, state.now.version):
            raise PartitionHalted(
                f"prompt {prompt!r} has version {self._versions[key]}, its state is of version {state.now.version}: "
                "restore both topics from one moment, or learn into new ones"
            )
        self._loaded[prompt] = state, recent
        self._recent[prompt] = recent
        return recent

    def _decoded(self, prompt: str, data: bytes) -> PromptRecord:
        try:
            record = decode_prompt_record(data)
            unpack(record.recent)
        except (msgspec.MsgspecError, ValueError) as error:
            raise PartitionHalted(f"the state of prompt {prompt!r} cannot be read: {error}") from None
        if record.lineage != self._lineage:
            raise OtherLineage(f"the state of prompt {prompt!r} has lineage {record.lineage}, ours is {self._lineage}")
        return record
