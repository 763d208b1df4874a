"""Nothing of any environment stands in the agents' code: no tool, no argument, no rule, and no way to import one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import operators.lesson
import operators.modelfree
import stream.demo.agents
import stream.demo.episode
import stream.demo.transforms
from stream.demo import names
from stream.demo.environment import Environment
from stream.demo.rules import MESSAGES

MODULES = [stream.demo.agents, stream.demo.episode, stream.demo.transforms, operators.lesson, operators.modelfree]
FILES = [Path(module.__file__ or "") for module in MODULES]


@cache
def known_words() -> set[str]:
    """Every tool and argument that any environment may have, in every spelling, and what its pools are made of."""
    words = {name for pool in names.ARGUMENTS.values() for name in pool} | {*names.CASES, *names.NOTES}
    for seed in range(40):
        world = Environment(seed)
        words.update(tool.name for tool in world.tools)
        words.update(parameter.name for tool in world.tools for parameter in tool.parameters)
        world.close()
    return {word.casefold() for word in words}


def mentioned(file: Path) -> tuple[set[str], list[str]]:
    """All identifiers, and all strings but docstrings, of a module."""
    tree = ast.parse(file.read_text())
    identifiers: set[str] = set()
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    strings = []
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                identifiers.add(value.casefold())
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            strings.append(node.value)
    return identifiers, strings


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_name_and_no_rule_of_an_environment_stands_there(file: Path) -> None:
    words = known_words()
    identifiers, strings = mentioned(file)
    assert not identifiers & words
    assert len(words) > 300
    said = {word.casefold() for text in strings for word in re.findall(r"[\w-]+", text)}
    assert not said & words
    fragments = {
        part.strip(" :'") for pair in MESSAGES.values() for text in pair for part in re.split(r"\{\w+\}", text)
    }
    assert not [part for part in fragments if len(part) > 4 and any(part in text for text in strings)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_agents_import_no_environment(file: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            imported.update({node.module or "", *(f"{node.module}.{name.name}" for name in node.names)})
        elif isinstance(node, ast.Import):
            imported.update(name.name for name in node.names)
    assert not {name for name in imported if re.search(r"environment|rules|\bnames\b", name)}
