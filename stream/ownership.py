#!/usr/bin/env python3
"""The command ``tracecomb``: look whose the packages ``stream`` and ``operators`` are, then run.

Other distributions install a package named ``stream`` too (stream-python, the SDK of getstream.io, does), and pip lets
one overwrite the other without a word. So this file is installed twice, as a module and, under the name ``tracecomb``,
as the script itself: the script must not import either package before it has looked. Standard library only.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

EXIT_NOT_OURS = 78
"""Exit code of the command when a package is not its own (``EX_CONFIG`` of sysexits.h)."""

DISTRIBUTION = "tracecomb"
PACKAGES = ("operators", "stream")


class Problem(NamedTuple):
    """A package is not ours: what is wrong with the file ``place``, and the distributions that list it as theirs."""

    kind: Literal["hidden", "missing", "overwritten"]
    place: Path
    culprits: tuple[str, ...] = ()


_WHAT = {
    "hidden": "comes before tracecomb's own",
    "missing": "is missing: uninstalling another distribution with a file of this name takes it along",
    "overwritten": "was overwritten",
}


class Found(NamedTuple):
    """``problems`` forbid to run; ``guests`` are distributions that share a folder with ours and did ours no harm."""

    problems: tuple[Problem, ...]
    guests: tuple[str, ...] = ()


def main() -> None:
    """Run the command, if its packages are its own."""
    try:
        check()
        from stream.cli import main as run
    except KeyboardInterrupt:  # the imports take long enough to be interrupted
        sys.exit(130)
    sys.exit(run())


def check() -> None:
    """Return when both packages are ours.

    :raises SystemExit: with :data:`EXIT_NOT_OURS` when one is not, after naming the culprit on stderr.
    """
    found = look()
    for line in explain(found):
        print(f"tracecomb: {line}", file=sys.stderr)
    if found.problems:
        raise SystemExit(EXIT_NOT_OURS)


def look(root: Path | None = None, path: Sequence[str] | None = None) -> Found:
    """Look whose the packages are, without importing them.

    :param root: the folder that holds our packages; by default where this file, or our distribution, is installed.
    :param path: the import path to look along; by default ``sys.path``.
    """
    search = list(sys.path if path is None else path)
    own = next(iter(distributions(name=DISTRIBUTION, path=search)), None)
    root = root or _home(own)
    if root is None:
        return Found((Problem("missing", Path(sys.prefix, f"{DISTRIBUTION}.dist-info")),))
    # An editable install, or a checkout on the import path, has no list of its files, and pip overwrites none of them.
    record = _record(own) if own is not None and _same(Path(str(own.locate_file(""))), root) else {}
    problems = [problem for package in PACKAGES for problem in _problems(package, root, record, search)]
    return Found(tuple(problems), () if problems else _guests(root, record, search))


def explain(found: Found) -> list[str]:
    """Say in lines for a person what was found, and what to do."""
    if not found.problems:
        return [
            f"{guest} has files in the folder of one of tracecomb's packages: it may be broken by tracecomb, and "
            "uninstalling it will break tracecomb. Give each a virtual environment of its own."
            for guest in found.guests
        ]
    kinds = {problem.kind for problem in found.problems}
    places = [
        f"{place} {_WHAT[kind]}" + (f" (from {' and '.join(culprits)})" if culprits else "")
        for kind, place, culprits in found.problems
    ]
    if len(places) > 5:
        places[4:] = [f"and so on: {len(places) - 4} more files"]
    cures = []
    if culprits := sorted({culprit.split()[0] for problem in found.problems for culprit in problem.culprits}):
        cures.append(f"pip uninstall {' '.join(culprits)}")
    elif "hidden" in kinds:
        cures.append("take its folder off Python's path (PYTHONPATH)")
    if kinds != {"hidden"}:
        cures.append(f"pip install --force-reinstall --no-deps {DISTRIBUTION}")
    return [
        "not started: the packages `stream` and `operators` that Python finds here are not all tracecomb's own.",
        *places,
        f"Install tracecomb into a virtual environment of its own, or mend this one: {'; '.join(cures)}",
    ]


def _problems(package: str, root: Path, record: Mapping[str, str], search: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with one package: another one is found first, or files of ours were overwritten or removed."""
    init = f"{package}/__init__.py"
    spec = PathFinder.find_spec(package, search)
    if spec is not None and spec.origin and not _same(found := Path(spec.origin), root / init):
        yield Problem("hidden", found, _owners([found], search))
    for name in dict.fromkeys([init, *(name for name in record if name.startswith(f"{package}/"))]):
        file, digest = root / name, record.get(name)
        if not file.exists():
            yield Problem("missing", file)
        elif digest is not None and digest != _digest(file):
            culprits = _owners([file], search)
            # Someone may have patched a module of ours by hand, which is theirs to do. Nobody so patches `__init__.py`.
            if culprits or name == init:
                yield Problem("overwritten", file, culprits)


def _guests(root: Path, record: Mapping[str, str], search: Sequence[str]) -> tuple[str, ...]:
    """The other distributions that have files in the folders of our packages."""
    if not record:
        return ()
    ours = {PurePosixPath(name).parts[1] for name in record}
    strangers = [
        entry
        for package in PACKAGES
        for entry in (root / package).iterdir()
        if entry.name not in ours and entry.name != "__pycache__"
    ]
    return _owners(strangers, search) if strangers else ()


def _owners(files: Iterable[Path], search: Sequence[str]) -> tuple[str, ...]:
    """The distributions other than ours that say they installed one of ``files``, with their versions."""
    wanted = {file.resolve() for file in files}
    found: set[str] = set()
    for other in distributions(path=list(search)):
        name = other.metadata["Name"] or ""
        if name.lower() == DISTRIBUTION:
            continue
        for entry in other.files or ():
            if entry.parts[0] in PACKAGES:
                place = Path(str(other.locate_file(entry))).resolve()
                if place in wanted or not wanted.isdisjoint(place.parents):
                    found.add(f"{name} {other.version}")
                    break
    return tuple(sorted(found))


def _home(own: Distribution | None) -> Path | None:
    """The folder that holds our packages: beside this module or, when it runs as the script, where metadata says."""
    here = Path(__file__).resolve()
    if here.parent.name == "stream":
        return here.parent.parent
    if own is None:
        return None
    source = json.loads(own.read_text("direct_url.json") or "{}")
    if source.get("dir_info", {}).get("editable"):
        return Path(unquote(urlsplit(source["url"]).path))
    return Path(str(own.locate_file("")))


def _record(own: Distribution) -> dict[str, str]:
    """The digests of our packages' files, as they were installed. (``Distribution.files`` leaves out missing ones.)"""
    rows = csv.reader((own.read_text("RECORD") or "").splitlines())
    return {name: digest for name, digest, *_ in rows if digest and name.split("/")[0] in PACKAGES}


def _digest(file: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


if __name__ == "__main__":
    main()
