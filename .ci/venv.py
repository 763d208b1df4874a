"""Make ``.venv`` hold tracecomb and the dependencies of one extra. Called by ``.ci/venv``, in the project's folder.

Usage: ``venv.py EXTRA STAMP``. Exits with 3 when this Python has no means to make a virtual environment.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

VENV = Path(".venv")
PYTHON = VENV / "bin" / "python"
BUILDING = VENV / ".tracecomb-building"
"""Stands in an environment of ours while it is not whole."""
CANNOT = 3

# Settings of the user's shell that would send what is installed elsewhere.
ASTRAY = ("PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")

Command = Sequence[str | Path]


def main(extra: str, stamp: str) -> int:
    """Set the environment up; where another process does so, wait for it."""
    # The lock is on this file. Installers inherit it: while one of a killed make lives on, no other may start.
    with open(__file__, "rb+") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another make, which is setting up .venv")
            fcntl.flock(lock, fcntl.LOCK_EX)
        return set_up(extra, stamp)


def set_up(extra: str, stamp: str) -> int:
    """Make what is missing. The stamp is written last, so what has it is whole."""
    here = stamp.partition("\n")[0]
    places = {file.read_text().partition("\n")[0] for file in VENV.glob(".tracecomb-*") if file != BUILDING}
    usable = PYTHON.exists() and run([PYTHON, "-c", ""]).returncode == 0
    if BUILDING.exists() or (places and (not usable or places != {here})):
        wipe()  # ours, and cut short, broken, or moved here from elsewhere
    elif not usable and VENV.exists() and any(VENV.iterdir()):
        say(f"{VENV} is not of tracecomb's making and has no working Python; move it away")
        return 1
    done = VENV / f".tracecomb-{extra}"
    if done.exists() and done.read_text().strip() == stamp:
        return 0
    version = ".".join(map(str, sys.version_info[:2]))
    say(f"setting up {VENV} for Python {version} ({extra}), once; this may take a minute")
    if PYTHON.exists():
        if places:
            BUILDING.touch()
    elif not make():
        return CANNOT
    if not install(extra):
        return 1
    done.write_text(f"{stamp}\n")
    BUILDING.unlink(missing_ok=True)
    return 0


def wipe() -> None:
    """Empty the environment, so that wherever this is cut short the next one knows that it may go on."""
    BUILDING.touch()
    for entry in VENV.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry != BUILDING:
            entry.unlink()
    BUILDING.unlink()


def make() -> bool:
    """Make an empty environment by the first way that works here."""
    VENV.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for way in ways(scratch):
            BUILDING.touch()
            if run(way).returncode == 0 and run([PYTHON, "-c", ""]).returncode == 0:
                return True
            wipe()
    return False


def ways(scratch: str) -> Iterator[Command]:
    """Commands that make an environment. Debian ships Pythons whose ``venv`` is missing, or cannot bring pip."""
    # Run from within an environment, even this one before it was wiped, its base is what there is to build on.
    python = str(getattr(sys, "_base_executable", None) or sys.executable)
    if uv := shutil.which("uv"):
        yield [uv, "venv", "--quiet", "--allow-existing", "--python", python, VENV]
    yield [python, "-m", "venv", VENV]
    yield [python, "-m", "virtualenv", "--quiet", VENV]
    if run([python, "-m", "pip", "install", "--quiet", "--target", scratch, "virtualenv"]).returncode == 0:
        start = f"import sys; sys.path.insert(0, {scratch!r}); from virtualenv.__main__ import run; run(sys.argv[1:])"
        yield [python, "-c", start, "--quiet", VENV]


def install(extra: str) -> bool:
    """Install the project with an extra, by uv or else by pip; show what the last of them said when none could."""
    project = ["--editable", "." if extra == "base" else f".[{extra}]"]
    said = "there is neither pip nor uv to install with\n"
    for command in installers():
        result = run([*command, "--quiet", *project])
        if result.returncode == 0:
            return True
        said = result.stdout
    sys.stderr.write(said)
    say("the dependencies could not be installed; the lines above say why")
    return False


def installers() -> Iterator[Command]:
    """Commands that install into the environment."""
    if uv := shutil.which("uv"):
        yield [uv, "pip", "install", "--python", PYTHON]
    if any(run([PYTHON, "-m", *pip]).returncode == 0 for pip in (["pip", "--version"], ["ensurepip"])):
        yield [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]


def run(command: Command) -> subprocess.CompletedProcess[str]:
    """Run a command without input, keeping what it says."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={name: value for name, value in os.environ.items() if name not in ASTRAY},
        close_fds=False,
    )


def say(line: str) -> None:
    """Tell the person at the terminal; stdout is for what make was asked to run."""
    print(f"tracecomb: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
