"""What tests of the replay share: running one, methods that take their time, and what a store holds when it is over."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog

from operators.modelfree import ModelFree
from operators.values import Bullet, Curation, Drop, Given, Operation, Reflection, Trace
from stream.atomic import Disk
from stream.config import Config
from stream.files import TraceFiles
from stream.intake import Tally
from stream.replay import Replay, recorded_sizes
from stream.statefile import load as load_state
from stream.states import entries
from stream.store import Store
from tests.stream.crashing import Crash, Stopping, Unsynced, abandon


def config(size: int | str = 8, *, seed: int = 0, **tables: dict[str, Any]) -> Config:
    """A configuration: the size of windows, the seed, and tables as in the file."""
    replay = {"batch_size": size, "seed": seed, **tables.pop("replay", {})}
    return msgspec.convert({"replay": replay, **tables}, Config)


@contextmanager
def quiet() -> Iterator[None]:
    """Without a log line a version, which costs more than the version."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def opened(root: Path, disk: Disk | None = None) -> Iterator[Store]:
    """The store, open for writing; a crash leaves it as the death of the process does."""
    store = Store.open(root, write=True, create=True, disk=disk or Unsynced())
    try:
        yield store
    except BaseException as error:
        if crashed(error):
            abandon(store)
        else:
            store.close()
        raise
    store.close()


def replay(
    root: Path,
    paths: Path | Iterable[Path],
    size: int | str = 8,
    *,
    seed: int = 0,
    chunk: int = 512,
    disk: Disk | None = None,
    method: Any = None,
    recorded: Path | None = None,
    go_on: bool = False,
    clock: Callable[[], float] = time.monotonic,
    progress: Callable[[Tally], None] = lambda tally: None,
    **tables: dict[str, Any],
) -> Tally:
    """Replay logs into the store at ``root``.

    :param recorded: a store to take the sizes of windows from.
    :param tables: the configuration's, as ``learning={"open_traces": 20}``.
    """
    sizes = None
    if recorded is not None:
        with Store.open(recorded, write=False) as other:
            sizes = recorded_sizes(other)
    files = TraceFiles([paths] if isinstance(paths, Path) else list(paths), chunk=chunk)
    with quiet(), opened(root, disk) as store:
        run = Replay(
            store,
            files,
            config(size, seed=seed, **tables),
            recorded=sizes,
            go_on=go_on,
            method=method,
            clock=clock,
            progress=progress,
        )
        return anyio.run(run.run)


def erratic(seed: int) -> Callable[[], float]:
    """A clock that goes now slowly, now fast, and always forward."""
    source = random.Random(seed)
    now = 0.0

    def tell() -> float:
        nonlocal now
        now += source.choice((1e-4, 1e-2, 1.0))
        return now

    return tell


class Versions(Stopping):
    """A disk that lets the writer crash right after its version number ``most`` is there."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if target.name == "state.json":
            self.left -= 1
            if not self.left:
                self.at = self.calls
                self.stop()


def crashes(root: Path, paths: Path | Iterable[Path], disk: Disk, size: int | str = 8, **options: Any) -> bool:
    """Replay on a disk that may crash; whether it did."""
    try:
        replay(root, paths, size, disk=disk, **options)
    except BaseException as error:
        if not crashed(error):
            raise
        return True
    return False


def crashed(error: BaseException) -> bool:
    """Whether a crash is what an error, or a group of them, is about."""
    if isinstance(error, BaseExceptionGroup):
        return any(crashed(each) for each in error.exceptions)
    return isinstance(error, Crash)


def store_bytes(root: Path, *, stats: bool = True) -> dict[str, bytes]:
    """All of a store by file, but for ``lineage``, controller samples and the lock.

    :param stats: compare statistics too, and what follows from their length; a replay with other sizes given, which
        closes the same windows, differs in them.
    """
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir() or name in ("lock", "controller.json"):
            continue
        data = path.read_bytes()
        if name == "store.json" or path.parent.name == "versions":
            data = _without(data, "lineage", *(() if stats else ("stats",)))
        elif stats:
            pass
        elif path.name == "log.jsonl":
            data = b"\n".join(_without(line, "stats") for line in data.splitlines())
        elif path.name == "state.json":  # it tells the length of the log, and has a checksum over that
            saved = load_state(path)
            assert saved is not None
            data = saved.state
        elif path.name == "ids.idx":  # as does the header
            data = data[96:]
        found[name] = data
    return found


def _without(data: bytes, *fields: str) -> bytes:
    value = msgspec.json.decode(data)
    for each in fields:
        value.pop(each, None)
    return msgspec.json.encode(value)


def differing(left: dict[str, bytes], right: dict[str, bytes]) -> list[str]:
    """The names of the files that differ, for messages that people can read."""
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def assert_same(left: Path, right: Path, *, stats: bool = True) -> None:
    """Two stores are the same bytes."""
    found = differing(store_bytes(left, stats=stats), store_bytes(right, stats=stats))
    assert not found, found


def learned(root: Path) -> dict[str, list[str]]:
    """The ids of all traces that some version was learned from, by prompt, in the order of versions."""
    with Store.open(root, write=False) as store:
        return {
            name: [id for entry in entries(store.prompt(name)) for id, _ in entry.traces] for name in store.prompts()
        }


def texts(root: Path) -> dict[str, set[str]]:
    """The content of all bullets of each prompt's newest version."""
    found = {}
    with Store.open(root, write=False) as store:
        for name in store.prompts():
            prompt = store.prompt(name)
            found[name] = {each["content"] for each in json.loads(prompt.update(prompt.version))["bullets"]}
    return found


def votes(root: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Helpful and harmful counts by prompt and content, where there are any."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    with Store.open(root, write=False) as store:
        for name in store.prompts():
            prompt = store.prompt(name)
            for each in json.loads(prompt.update(prompt.version))["bullets"]:
                count = (each.get("helpful", 0), each.get("harmful", 0))
                if any(count):
                    found.setdefault(name, {})[each["content"]] = count
    return found


def versions(root: Path) -> int:
    """How many versions all prompts have together."""
    with Store.open(root, write=False) as store:
        return sum(store.prompt(name).version for name in store.prompts())


def rejects(root: Path) -> list[dict[str, Any]]:
    """The records in ``rejects.jsonl``."""
    path = root / "rejects.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


class Late:
    """The model-free method behind a connection that takes its time, other every time.

    :param seed: of the delays.
    :param longest: in seconds; with 0 only the order of answers changes.
    """

    name = "model-free"
    reduces = False

    def __init__(self, seed: int, method: Any = None, *, longest: float = 0.002) -> None:
        self._method = method or ModelFree()
        self._source = random.Random(seed)
        self._longest = longest
        self.reduces = self._method.reduces

    def _later(self, value: Any) -> Any:
        turns = self._source.choice((0, 0, 1, 2, 9))
        if not turns:
            return value

        async def answer() -> Any:
            for _ in range(turns):
                await anyio.sleep(self._longest * self._source.choice((0, 0.3, 1)) / turns)
            return value

        return answer()

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        answer: Reflection | Awaitable[Reflection] = self._later(self._method.reflect(trace, seen))
        return answer

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        answer: Curation | Awaitable[Curation] = self._later(self._method.curate(given, base))
        return answer

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        answer: Curation | Awaitable[Curation] = self._later(self._method.reduce(proposals, base))
        return answer


class Overloaded(ModelFree):
    """A curator that covers two insights a call, drops one, rewrites and removes bullets, and leaves the rest."""

    reduces = True

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        operations = [
            Operation("ADD", (number,), (), one.insight.section, one.insight.content, one.insight.key)
            for number, one in enumerate(given[:2], 1)
        ]
        if base and len(given) > 3:
            old = base[len(given) % len(base)]
            insight = given[3].insight
            operations.append(Operation("UPDATE", (4,), (old.bullet,), insight.section, insight.content, insight.key))
        if len(base) > 6 and len(given) > 4:
            operations.append(Operation("REMOVE", (5,), (base[-1].bullet,)))
        drops = (Drop((3,), "vague"),) if len(given) > 2 else ()
        return Curation(tuple(operations), drops)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        if len(proposals) < 2:
            return Curation()
        first, second = proposals[:2]
        merged = Operation(
            "MERGE", (1, 2), (first.bullet, second.bullet), first.section, f"{first.content}; {second.content}"
        )
        return Curation((merged,))
