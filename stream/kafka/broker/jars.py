"""The jars of Apache Kafka's server: from Maven, once, into a cache that any number of processes share."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stream.kafka.broker.errors import Missing

POM = Path(__file__).with_name("pom.xml")
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.xml")

_TIMEOUT = 600.0  # seconds for 50 MB over whatever line there is
_TOLD = 8


def java(environ: Mapping[str, str] = os.environ) -> str:
    """Find the command ``java``: of ``JAVA_HOME``, else on the path.

    :raises Missing: naming what to install.
    """
    home = environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin") if home else environ.get("PATH"))
    if found is None:
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no `java` on the PATH"
        raise Missing(f"{where}; install Java 17 or newer (Debian: apt install openjdk-17-jre-headless)")
    return found


def jars(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the jars that ``pom.xml`` names, resolving them if the cache has none yet.

    It is whole or not there: Maven writes into a folder beside it, which then takes its name. Processes that want it at
    once wait for the first of them. It may take a minute, and needs Maven and a line to its repository then.

    :raises Missing: when Maven is not installed, or cannot resolve them; its own last lines stand in the message.
    """
    base = environ.get("XDG_CACHE_HOME", "")
    # A relative path there is to be ignored (XDG Base Directory Specification).
    cache = (Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or Path.home()) / ".cache") / "tracecomb"
    pom = POM.read_bytes()
    name = f"kafka-{_version(pom)}-{hashlib.sha256(pom).hexdigest()[:8]}"
    folder = cache / name
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn", path=environ.get("PATH"))
    if maven is None:
        raise Missing(
            "Kafka's jars are not in the cache yet, and there is no `mvn` on the PATH to get them; install Maven "
            "(Debian: apt install maven)"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            part = cache / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)  # of someone who was killed
            _resolve(maven, part, lock.fileno(), environ)
            part.rename(folder)
    return folder


def _resolve(maven: str, to: Path, lock: int, environ: Mapping[str, str]) -> None:
    """Let Maven write the jars.

    :param lock: a descriptor that Maven holds too, so that nobody else writes there as long as it may.
    """
    command = [maven, "-B", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={to}"]
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[lock],
            env=dict(environ),
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        late = f"Maven did not resolve Kafka's jars within {_TIMEOUT:.0f} s; is its repository reachable?"
        raise Missing(late) from None
    if ran.returncode or not any(to.glob("kafka_*.jar")):
        lines = [line for line in ran.stdout.decode(errors="replace").splitlines() if line.strip()]
        told = "\n".join(lines[:_TOLD]) or "it said nothing"
        raise Missing(f"Maven could not resolve Kafka's jars (exit code {ran.returncode}):\n{told}")


def _version(pom: bytes) -> str:
    found = re.search(rb"<kafka\.version>([\w.-]+)</kafka\.version>", pom)
    if found is None:
        raise Missing(f"{POM}: names no kafka.version")
    return found[1].decode()
