"""``.ci/venv``, which sets up what every target of the Makefile needs: on odd machines, cut short, and twice at once.

No test installs anything: ``uv`` on the path is a stand-in, which makes an environment that has neither pip nor a way
to get it, and writes down each install that it is asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

BASE = getattr(sys, "_base_executable", sys.executable)
UV = f"""#!/bin/sh
case "$1 $2" in
"python find") exit 1 ;;
"venv "*)
    mkdir -p .venv/bin
    printf '#!/bin/sh\\n[ "$1" != -m ] && exec {BASE} "$@"\\n' > .venv/bin/python
    chmod +x .venv/bin/python
    ;;
"pip install")
    shift 4
    echo "$*" >> installs
    if [ -e during ]; then . ./during; fi
    exit 0
    ;;
esac
"""
PYTHON = f'#!/bin/sh\nexec {BASE} "$@"\n'
OLD_PYTHON = "#!/bin/sh\necho 3.9.18\n"
# Says that it is new enough, but has neither venv nor virtualenv nor pip.
BARE_PYTHON = '#!/bin/sh\n[ "$1" = -I ] && exit 3\necho 3.12.1\n'


class Result(NamedTuple):
    """How a run ended, and the lines that it told the person."""

    status: int
    lines: list[str]


class Project:
    """A project's folder with what ``.ci/venv`` reads, and a machine that has only the ``commands``."""

    def __init__(self, folder: Path, **commands: str) -> None:
        self.folder = folder
        self.bin = folder.parent / "bin"
        self.bin.mkdir()
        for tool in ("cat", "chmod", "cksum", "dirname", "mkdir", "sh", "sleep"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        for name, script in commands.items():
            self.command(name, script)
        for file in (".ci/venv", ".ci/venv.py", "pyproject.toml", "stream/ownership.py"):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, folder / file)

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def command(self, name: str, script: str) -> None:
        """Put a command on the path."""
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def during_install(self, script: str) -> None:
        """What happens in the middle of each install from now on."""
        (self.folder / "during").write_text(script)

    def installs(self) -> list[str]:
        """What was asked for by the installs so far."""
        log = self.folder / "installs"
        return log.read_text().splitlines() if log.exists() else []

    def start(self, extra: str = "base", **environ: str) -> subprocess.Popen[str]:
        """Start it; it is the leader of a process group of its own."""
        return subprocess.Popen(
            ["sh", str(self.folder / ".ci" / "venv"), extra],
            env={"PATH": str(self.bin), **environ},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, extra: str = "base", **environ: str) -> Result:
        with self.start(extra, **environ) as process:
            said = process.communicate()[1].splitlines()
        return Result(process.returncode, said)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "the project"


@pytest.fixture
def project(folder: Path) -> Project:
    return Project(folder, python3=PYTHON, uv=UV)


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


def test_once_and_then_nothing(project: Project) -> None:
    first = project.run()
    assert first.status == 0
    assert len(first.lines) == 1
    assert (project.venv / "bin" / "python").exists()
    assert project.run() == Result(0, [])
    assert project.installs() == ["--quiet --editable ."]


def test_each_extra_is_added_to_the_same_environment(project: Project) -> None:
    project.run("base")
    (project.venv / "kept").touch()
    assert project.run("dev").status == 0
    assert project.run("base") == project.run("dev") == Result(0, [])
    assert project.installs() == ["--quiet --editable .", "--quiet --editable .[dev]"]
    assert (project.venv / "kept").exists()


@pytest.mark.parametrize("file", ["pyproject.toml", "stream/ownership.py", ".ci/venv.py"])
def test_what_decides_the_install_is_watched(project: Project, file: str) -> None:
    project.run()
    with (project.folder / file).open("a") as changed:
        changed.write("# changed\n")
    assert project.run().status == 0
    assert project.run() == Result(0, [])
    assert len(project.installs()) == 2


def test_a_moved_project_starts_anew(project: Project) -> None:
    project.run()
    (project.venv / "stale").touch()
    project.folder = project.folder.rename(project.folder.parent / "moved")
    assert project.run().status == 0
    assert not (project.venv / "stale").exists()


def test_a_python_that_is_gone_is_replaced(project: Project) -> None:
    project.run()
    python = project.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere")
    assert project.run().status == 0
    assert subprocess.run([python, "-c", ""], check=False).returncode == 0


@pytest.mark.parametrize("before", ["base", "nothing"])
def test_killed_while_it_installs(project: Project, before: str) -> None:
    """All its processes at once, as at power off: what is left is not taken for whole."""
    if before == "base":
        project.run("base")
    project.during_install("echo > .venv/half; echo > reached; sleep 60")
    with project.start("dev") as process:
        wait_for(project.folder / "reached")
        os.killpg(process.pid, signal.SIGKILL)
    (project.folder / "during").unlink()
    assert project.run(before if before == "base" else "dev").status == 0
    assert not (project.venv / "half").exists()


def test_killed_while_it_wipes(project: Project) -> None:
    """What a wipe removes last is the mark that says to wipe."""
    project.run()
    (project.venv / ".tracecomb-building").touch()
    shutil.rmtree(project.venv / "bin")
    assert project.run().status == 0
    assert project.run() == Result(0, [])


def test_two_at_once_install_once(project: Project) -> None:
    project.during_install("echo > reached; while [ ! -e go ]; do sleep 0.01; done")
    with project.start() as first:
        wait_for(project.folder / "reached")
        with project.start() as second:
            assert second.stderr is not None
            assert "waiting for another make" in second.stderr.readline()
            (project.folder / "go").touch()
            second.communicate()
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(project.installs()) == 1


def test_an_install_that_fails_says_why(project: Project) -> None:
    project.during_install("echo no such index; exit 1")
    status, lines = project.run()
    assert status == 1
    assert "no such index" in lines
    (project.folder / "during").unlink()
    assert project.run().status == 0
    assert len(project.installs()) == 2


def test_an_environment_of_someone_else(project: Project) -> None:
    """It is used when it works, and never removed."""
    project.venv.mkdir()
    (project.venv / "theirs").touch()
    status, lines = project.run()
    assert status == 1
    assert "move it away" in lines[0]
    subprocess.run([BASE, "-m", "venv", "--without-pip", project.venv], check=True)
    assert project.run().status == 0
    assert (project.venv / "theirs").exists()


def test_old_python(folder: Path) -> None:
    project = Project(folder, python3=OLD_PYTHON, uv=UV)
    needs = f"tracecomb: needs Python 3.11 or newer ({project.bin}/python3 is 3.9.18); install one, or name it: "
    assert project.run() == Result(1, [needs + "make PYTHON=/path/to/python3"])
    assert not project.venv.exists()


def test_no_python(folder: Path) -> None:
    status, lines = Project(folder).run()
    assert (status, len(lines)) == (1, 1)
    assert "needs Python 3.11 or newer;" in lines[0]


def test_old_python_with_a_new_one_beside_it(folder: Path) -> None:
    project = Project(folder, **{"python3": OLD_PYTHON, "python3.13": PYTHON, "uv": UV})
    assert project.run().status == 0


def test_python_that_is_named(folder: Path) -> None:
    project = Project(folder, python3=OLD_PYTHON, uv=UV)
    odd = project.bin / "a python"
    odd.write_text(PYTHON)
    odd.chmod(0o755)
    assert project.run(PYTHON=str(odd)).status == 0
    project.venv.rename(project.venv.with_name("gone"))
    status, lines = project.run(PYTHON=str(project.bin / "python3"))
    assert status == 1
    assert "is 3.9.18" in lines[0]


def test_python_that_cannot_make_environments(folder: Path) -> None:
    project = Project(folder, python3=BARE_PYTHON)
    status, lines = project.run()
    assert (status, len(lines)) == (1, 1)
    assert "apt install python3.12-venv" in lines[0]
    project.command("python3.13", PYTHON)
    project.command("uv", UV)
    assert project.run().status == 0


def test_settings_that_lead_astray(project: Project) -> None:
    project.during_install('[ -z "$PIP_USER$PIP_TARGET$PYTHONPATH$VIRTUAL_ENV" ] || exit 1')
    astray = {"PIP_USER": "1", "PIP_TARGET": "/nowhere", "PYTHONPATH": "/nowhere", "VIRTUAL_ENV": "/nowhere"}
    assert project.run(**astray).status == 0
