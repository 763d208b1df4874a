"""The house's rules, for every file: where things live, what the pure package may touch, what a package exports."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# fmt: off
TOP = {
    "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "pyproject.toml", "uv.lock",
    "deploy", "operators", "stream", "tests",
}

# What operators may import; and what of that, or of the builtins, reaches the world or reads a clock all the same.
PURE = {
    "__future__", "abc", "array", "asyncio", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "difflib", "enum", "functools", "hashlib", "heapq", "inspect", "itertools", "json", "math", "operator",
    "re", "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "zlib",
    "anyio", "msgspec", "operators", "rapidfuzz", "rpds",
}
IMPURE = {
    "anyio.Path", "anyio.connect_tcp", "anyio.current_time", "anyio.open_file", "anyio.open_process", "anyio.run",
    "anyio.run_process", "anyio.sleep", "anyio.sleep_until", "anyio.to_thread",
    "asyncio.create_subprocess_exec", "asyncio.open_connection", "asyncio.run", "asyncio.sleep", "asyncio.to_thread",
    "date.today", "datetime.now", "datetime.today", "datetime.utcnow", "loop.time",
    "__import__", "eval", "exec", "id", "input", "open", "print",
}
# fmt: on
LONGEST = 350


def sources(*folders: str) -> list[Path]:
    """The Python files of these folders of the project."""
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def dotted(node: ast.expr) -> str:
    """``a.b`` for the expression ``x.a.b`` or ``a.b``: its last two names."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value).rpartition('.')[2]}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each imported module with the name that is taken from it, if one is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def impurities(source: str) -> Iterator[str]:
    """What makes a module of operators impure, as far as its text shows."""
    tree = ast.parse(source)
    for module, name in imports(tree):
        if module.partition(".")[0] not in PURE and f"{module}.{name}" != "random.Random":
            yield f"imports {module}"
        elif f"{module.rpartition('.')[2]}.{name}" in IMPURE:
            yield f"imports {module}.{name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "Random" and not node.args:
            yield "calls Random() without a seed"
        elif isinstance(node, ast.Call | ast.Attribute) and (name := dotted(getattr(node, "func", node))) in IMPURE:
            yield f"uses {name}"


def test_top_level() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so nothing says which files are the project's")
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} <= TOP


def test_operators_are_pure() -> None:
    found = {name_of(file): list(impurities(file.read_text())) for file in sources("operators")}
    assert {name: impure for name, impure in found.items() if impure} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from stream import cli",
        "import os",
        "from time import monotonic",
        "import random",
        "from random import shuffle",
        "from random import Random\nRandom()",
        "from datetime import datetime\ndatetime.now(None)",
        "import datetime\nnow = datetime.datetime.now",
        "from anyio import sleep",
        "import anyio\nasync def f():\n    await anyio.sleep(1)",
        "print(1)",
    ],
)
def test_impurity_is_seen(source: str) -> None:
    assert list(impurities(source))


def test_purity_is_seen() -> None:
    assert not list(impurities("from random import Random\nimport anyio\nRandom(3)\nanyio.Event()\nself.open(1)"))


@pytest.mark.parametrize("package", ["operators", "stream"])
def test_exports(package: str) -> None:
    """``__all__`` is all that the package shows, flat and sorted: constants, then classes, then functions."""
    module = importlib.import_module(package)
    exported = list(module.__all__)
    shown = {name for name, value in vars(module).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert set(exported) == shown - {"annotations"}
    assert exported == sorted(exported, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_every_module_says_what_it_is() -> None:
    trees = {name_of(file): ast.parse(file.read_text()) for file in sources("operators", "stream", ".ci")}
    assert [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_modules_have_one_idea() -> None:
    lengths = {name_of(file): len(file.read_text().splitlines()) for file in sources("operators", "stream")}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    first_screen = "\n".join(readme.splitlines()[:30])
    assert "make demo" in first_screen
    assert "make test" in first_screen
    assert "stream-python" in readme


def test_readme_and_ci_run_the_same_tests() -> None:
    run = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make lint$", run, re.MULTILINE)
    assert re.search(r"^make test$", run, re.MULTILINE)
