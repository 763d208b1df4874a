"""The TOML configuration: every table with its defaults, and errors that say which key, and what is allowed there.

ConfigError    the file cannot be read, is not TOML, or says what is not allowed
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from rapidfuzz import fuzz

from operators.settings import Settings
from stream.kafka.tables import Kafka, Service, Topics

DEFAULT_STORE = "./tracecomb.d"


class ConfigError(Exception):
    """The configuration cannot be used; the message names the file, the key, its value and what is allowed."""


def _whole(low: int, high: int) -> Meta:
    return Meta(ge=low, le=high, description=f"a whole number from {low:,} to {high:,}")


# What an error says is allowed is the description here, beside the limits that it describes.
_Count = Annotated[int, _whole(1, 1_000_000)]
_Size = Annotated[int, Meta(ge=1, le=10_000)]
_Template = Annotated[
    str,
    Meta(min_length=1, description="a prompt's name, in which {agent} stands for the trace's agent and {{ for a brace"),
]


class _Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Replay(_Table, frozen=True):
    """``[replay]``: what a replay learns from its traces; flags of the command go before these.

    :param prompt: the prompt of traces that name none.
    :param force_prompt: the prompt of all traces, whatever they name.
    :param batch_size: traces a window; with ``auto`` the controller chooses.
    :param seed: of the shuffle.
    :param method: how lessons are found.
    """

    prompt: _Template | None = None
    force_prompt: _Template | None = None
    batch_size: Annotated[Literal["auto"] | _Size, Meta(description='"auto" or a whole number from 1 to 10,000')] = (
        "auto"
    )
    seed: Annotated[int, _whole(0, 2**63 - 1)] = 0
    method: Annotated[Literal["model-free"], Meta(description='"model-free"')] = "model-free"

    def __post_init__(self) -> None:
        """Refuse what is no template.

        :raises ValueError: naming the key first.
        """
        for key, template in (("prompt", self.prompt), ("force_prompt", self.force_prompt)):
            if template is not None and not _is_template(template):
                raise ValueError(f"{key}: braces hold something other than agent")


class Learning(_Table, frozen=True):
    """``[learning]``: windows, curation, and what a playbook may hold.

    :param max_staleness: how many windows the base of a window lies further back than the one before it.
    :param copies: copies of each reflection in the augmented shuffle (Combee's p).
    :param support_traces: traces that must teach a bullet before agents get it.
    :param support_sessions: sessions that those traces must come from.
    :param token_budget: tokens, estimated from bytes, that a prompt's text may have.
    :param fold_every: windows between two folds.
    :param max_wait: seconds after which a window closes though it is not full; a replay has no clock.
    :param open_traces: traces in open windows beyond which a window closes.
    :param fan_in: proposals that one level 2 call gets at most.
    """

    max_staleness: Annotated[int, _whole(0, 100)] = 1
    copies: Annotated[int, _whole(1, 10)] = 2
    support_traces: _Count = 1
    support_sessions: _Count = 1
    token_budget: Annotated[int, _whole(100, 100_000_000)] = 80_000
    fold_every: _Count = 20
    max_wait: Annotated[float, Meta(gt=0, le=604_800, description="seconds, over 0, at most 604,800 (a week)")] = 60.0
    open_traces: _Count = 20_000
    fan_in: Annotated[int, _whole(2, 10_000)] = 50

    def __post_init__(self) -> None:
        """Refuse to fold more often than bases in flight allow.

        :raises ValueError: naming the key first.
        """
        if self.fold_every <= self.max_staleness + 1:
            raise ValueError(f"fold_every: must be over max_staleness + 1, which is {self.max_staleness + 1}")


class Controller(_Table, frozen=True):
    """``[controller]``: how the batch size is chosen.

    :param candidates: batch sizes to profile; the first and the last are the clamps.
    :param windows_per_size: windows that profile each.
    :param tau: the share of the steepest slope at which larger batches stop paying.
    """

    candidates: Annotated[
        tuple[_Size, ...],
        Meta(min_length=3, max_length=50, description="three or more whole numbers from 1 to 10,000, rising"),
    ] = (8, 16, 32, 64, 128)
    windows_per_size: Annotated[int, _whole(1, 1_000)] = 3
    tau: Annotated[float, Meta(gt=0, lt=1, description="a number between 0 and 1")] = 0.016

    def __post_init__(self) -> None:
        """Refuse candidates that do not rise.

        :raises ValueError: naming the key first.
        """
        if any(low >= high for low, high in pairwise(self.candidates)):
            raise ValueError("candidates: do not rise")


class Rejects(_Table, frozen=True):
    """``[rejects]``: how many bad lines stop a run.

    :param share: the share of all lines that is too much.
    :param after: lines after which the share is first looked at.
    :param run: bad lines in a row that are too many.
    """

    share: Annotated[float, Meta(gt=0, le=1, description="a number over 0, at most 1")] = 0.2
    after: Annotated[int, _whole(0, 1_000_000_000)] = 1_000
    run: Annotated[int, _whole(1, 1_000_000_000)] = 500


class Text(_Table, frozen=True):
    """``[text]``: the text that agents get.

    :param counters: show each bullet's helpful and harmful counts, as ACE does; each vote then spoils prompt caches.
    """

    counters: Annotated[bool, Meta(description="true or false")] = False


class Config(_Table, frozen=True):
    """The whole configuration, one field a table."""

    replay: Replay = Replay()
    learning: Learning = Learning()
    controller: Controller = Controller()
    rejects: Rejects = Rejects()
    text: Text = Text()
    kafka: Kafka = Kafka()
    topics: Topics = Topics()
    service: Service = Service()


def load(path: str | Path | None = None, flags: Mapping[str, object] | None = None) -> Config:
    """Read a configuration file; the defaults where there is none.

    :param flags: keys of ``[replay]`` that were given as flags of the command, which go before the file's.
    :raises ConfigError: when the file cannot be read, or it or a flag says what is not allowed.
    """
    file = None if path is None else Path(path)
    document = {} if file is None else _read(file)
    config = _convert(document, file)
    if not flags:
        return config
    # The file was found good, so what is wrong now is a flag.
    return _convert({**document, "replay": {**document.get("replay", {}), **flags}}, None)


def settings(config: Config, **given: Any) -> Settings:
    """The operators' settings: what a replay and the service have in common, and what is ``given``."""
    learning = config.learning
    return Settings(
        max_staleness=learning.max_staleness,
        copies=learning.copies,
        support_traces=learning.support_traces,
        support_sessions=learning.support_sessions,
        token_budget=learning.token_budget,
        fan_in=learning.fan_in,
        fold_every=learning.fold_every,
        counters=config.text.counters,
        **given,
    )


def store_address(at: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Where the store is: ``--at``, else ``TRACECOMB_AT``, else ``./tracecomb.d``."""
    return at or environ.get("TRACECOMB_AT") or DEFAULT_STORE


def fill(template: str, agent: str) -> str:
    """The prompt that ``template`` names for a trace of ``agent``; empty where it needs an agent and has none."""
    parts = [(text, field is not None) for text, field, _, _ in Formatter().parse(template)]
    if not agent and any(asks for _, asks in parts):
        return ""
    return "".join(text + agent * asks for text, asks in parts)


def _is_template(template: str) -> bool:
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return False
    return all(
        (field, spec, conversion) in {(None, None, None), ("agent", "", None)} for _, field, spec, conversion in parts
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error


def _convert(document: dict[str, Any], file: Path | None) -> Config:
    """Make the document a configuration; without a ``file``, what can be wrong with it are flags."""
    where = f"{file}: " if file else ""
    for path in _paths(document):
        if path not in _ALLOWED:
            nearest = max(_ALLOWED, key=lambda known: _likeness(path, known))
            raise ConfigError(f"{where}{path} is not a setting; the nearest one is {nearest}")
    try:
        return msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        path = str(error).rpartition("`$.")[2].partition("`")[0].partition("[")[0]
        if error.__cause__:
            path += "." + str(error.__cause__).partition(":")[0]
        value: Any = document
        for key in path.split("."):
            value = value[key]
        name = path if file else "--" + path.rpartition(".")[2].replace("_", "-")
        shown = json.dumps(value, default=str, ensure_ascii=False)
        raise ConfigError(f"{where}{name} is {shown}; allowed: {_ALLOWED[path]}") from error


def _paths(document: Mapping[str, Any]) -> Iterator[str]:
    for name, table in document.items():
        yield name
        if isinstance(table, dict):
            yield from (f"{name}.{key}" for key in table)


def _likeness(path: str, known: str) -> float:
    """How near two keys are; one in the wrong table is near to itself in the right one."""
    return max(fuzz.ratio(path, known), 0.95 * fuzz.ratio(path.rpartition(".")[2], known.rpartition(".")[2]))


def _allowed() -> Iterator[tuple[str, str]]:
    """Each table and key with what is allowed there."""
    for table in msgspec.structs.fields(Config):
        yield table.name, "a table"
        for key in msgspec.structs.fields(table.type):
            kinds = (key.type, *get_args(key.type))
            metas = [meta for kind in kinds for meta in getattr(kind, "__metadata__", ())]
            yield f"{table.name}.{key.name}", next(meta.description for meta in metas if meta.description)


_ALLOWED = dict(_allowed())
