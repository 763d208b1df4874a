"""What is installed, and what the tests ask of the machine."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, require
from tests.test_house import imports, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {"backports.zstd": "backports", "markdown-it-py": "markdown_it", "rpds-py": "rpds"}
"""The top-level module of each distribution that is not named like it."""


def distribution(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def test_dependencies_are_those_imported() -> None:
    trees = [ast.parse(file.read_text()) for file in sources("operators", "stream")]
    imported = {module.partition(".")[0] for tree in trees for module, _ in imports(tree)}
    # `compression` is the standard library's from Python 3.14 on.
    imported -= {"operators", "stream", "compression", *sys.stdlib_module_names}
    declared = {distribution(requirement) for requirement in PROJECT["dependencies"]}
    assert imported == {MODULES.get(name, name) for name in declared}


def test_dependencies_have_lower_bounds_only() -> None:
    for requirement in [
        *PROJECT["dependencies"],
        *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
    ]:
        assert re.fullmatch(r"[\w.-]+(\[[\w,]+\])?>=[\d.]+(; python_version < '3\.14')?", requirement)


def test_wheel(tmp_path: Path) -> None:
    """The wheel holds both packages whole, and the command in it runs."""
    require("hatchling", importlib.util.find_spec("hatchling"))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    site = tmp_path / "site"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    files = {str(file.relative_to(site)) for name in ("operators", "stream") for file in (site / name).rglob("*.*")}
    here = {str(file.relative_to(ROOT)) for name in ("operators", "stream") for file in (ROOT / name).rglob("*.*")}
    assert files == {file for file in here if not file.endswith(".pyc")}
    assert {"operators/py.typed", "stream/py.typed"} <= files

    (scripts,) = site.glob("*.data/scripts")
    assert [script.name for script in scripts.iterdir()] == ["tracecomb"]
    assert (scripts / "tracecomb").read_text().startswith("#!python\n")
    # Installers make a script executable when it is so in the wheel, thus in the checkout.
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        (script,) = (entry for entry in wheel.infolist() if entry.filename.endswith("scripts/tracecomb"))
    assert script.external_attr >> 16 & 0o111 == 0o111
    environ = {"PYTHONPATH": f"{site}:{sysconfig.get_path('purelib')}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-S", str(scripts / "tracecomb"), "--version"]
    result = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert PROJECT["version"] in result.stdout


def test_make_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {target for line in re.findall(r"^\.PHONY:(.*)", makefile, re.MULTILINE) for target in line.split()}
    assert targets >= {"bench", "demo", "lint", "test"}
    assert targets == set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))


def test_a_missing_thing_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    require("a broker", True)
    monkeypatch.delenv("TRACECOMB_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="a broker is missing"):
        require("a broker", False)
    monkeypatch.setenv("TRACECOMB_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="a broker is missing"):
        require("a broker", None)
