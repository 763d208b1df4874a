"""Whose packages the command runs: an installation is laid out in a folder, as pip does it, and others get into it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stream import ownership
from stream.ownership import EXIT_NOT_OURS, explain, look

CLI = 'def main() -> int:\n    print("ran")\n    return 5\n'
OURS = {
    "operators/__init__.py": "",
    "stream/__init__.py": "ours = True\n",
    "stream/cli.py": CLI,
    "stream/ownership.py": Path(ownership.__file__).read_text(),
}
# As in stream-python: its __init__ imports its client, and what that needs may not be there.
THEIRS = {
    "stream/__init__.py": "from stream.client import connect\n",
    "stream/client/__init__.py": "import absent_dependency\n",
}


def install(site: Path, name: str, version: str, files: Mapping[str, str], **metadata: str) -> None:
    """Write the files and metadata of a distribution, over whatever is there."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    record = f"{info.name}/METADATA,,\n"
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    info.mkdir(parents=True)
    metadata = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "RECORD": record, **metadata}
    for file, text in metadata.items():
        (info / file).write_text(text)


def uninstall(site: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """Remove what :func:`install` wrote."""
    shutil.rmtree(site / f"{name.replace('-', '_')}-{version}.dist-info")
    for path in files:
        (site / path).unlink()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder for packages with tracecomb in it."""
    folder = tmp_path / "site"
    install(folder, "tracecomb", "1.0", OURS)
    return folder


def command(*path: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as it is installed, a script outside of the packages, with nothing else to import."""
    script = path[0].parent / "tracecomb"
    shutil.copy(ownership.__file__, script)
    run = [sys.executable, "-S", str(script), "--version"]
    environ = {"PYTHONPATH": ":".join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(run, env=environ, capture_output=True, text=True, check=False)


def test_alone(site: Path) -> None:
    result = command(site)
    assert (result.returncode, result.stdout, result.stderr) == (5, "ran\n", "")


def test_overwritten(site: Path) -> None:
    install(site, "stream-python", "5.4.0", THEIRS)
    result = command(site)
    assert result.returncode == EXIT_NOT_OURS
    assert result.stdout == ""
    assert f"{site}/stream/__init__.py was overwritten (from stream-python 5.4.0)" in result.stderr
    assert "pip uninstall stream-python; pip install --force-reinstall --no-deps tracecomb" in result.stderr
    assert "Traceback" not in result.stderr


def test_installed_over_theirs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "stream-python", "5.4.0", THEIRS)
    install(site, "tracecomb", "1.0", OURS)
    result = command(site)
    assert (result.returncode, result.stdout) == (5, "ran\n")
    assert "stream-python 5.4.0 has files in the folder" in result.stderr
    uninstall(site, "stream-python", "5.4.0", THEIRS)
    result = command(site)
    assert result.returncode == EXIT_NOT_OURS
    assert f"{site}/stream/__init__.py is missing" in result.stderr


def test_theirs_is_found_first(site: Path, tmp_path: Path) -> None:
    install(tmp_path / "other", "stream-python", "5.4.0", THEIRS)
    result = command(tmp_path / "other", site)
    assert result.returncode == EXIT_NOT_OURS
    assert (
        f"{tmp_path}/other/stream/__init__.py comes before tracecomb's own (from stream-python 5.4.0)" in result.stderr
    )
    assert result.stderr.endswith("mend this one: pip uninstall stream-python\n")


def test_found_first_without_a_distribution(site: Path, tmp_path: Path) -> None:
    (tmp_path / "work" / "operators").mkdir(parents=True)
    (tmp_path / "work" / "operators" / "__init__.py").touch()
    found = look(site, [str(tmp_path / "work"), str(site)])
    assert [(problem.kind, problem.culprits) for problem in found.problems] == [("hidden", ())]
    assert "PYTHONPATH" in explain(found)[-1]


def test_editable(site: Path, tmp_path: Path) -> None:
    """The packages are in a checkout, which is on the path after the folder of packages."""
    checkout = tmp_path / "check out"
    install(checkout, "x", "1", OURS)
    shutil.rmtree(site)
    source = json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    install(site, "tracecomb", "1.0", {"_tracecomb.pth": str(checkout)}, **{"direct_url.json": source})
    assert command(site, checkout).returncode == 5
    install(site, "stream-python", "5.4.0", THEIRS)
    result = command(site, checkout)
    assert result.returncode == EXIT_NOT_OURS
    assert "(from stream-python 5.4.0)" in result.stderr


def test_metadata_is_gone(site: Path) -> None:
    shutil.rmtree(site / "tracecomb-1.0.dist-info")
    result = command(site)
    assert result.returncode == EXIT_NOT_OURS
    assert "tracecomb.dist-info is missing" in result.stderr


def test_nobody_owns_up(site: Path) -> None:
    """A module patched by hand is its owner's business; another ``__init__`` is not the package."""
    (site / "stream" / "cli.py").write_text(CLI.replace("ran", "patched"))
    (site / "stream" / "notes.txt").touch()
    (site / "stream" / "__pycache__").mkdir()
    assert command(site).stdout == "patched\n"
    (site / "operators" / "__init__.py").write_text("theirs = True\n")
    assert [(p.kind, p.place.parent.name) for p in look(site, [str(site)]).problems] == [("overwritten", "operators")]


def test_many_files_make_few_lines(site: Path) -> None:
    more = {f"stream/m{number}.py": "" for number in range(20)}
    install(site, "tracecomb", "1.1", {**OURS, **more})
    shutil.rmtree(site / "tracecomb-1.0.dist-info")
    install(site, "vendor", "2", dict.fromkeys(more, "theirs = True\n"))
    found = look(site, [str(site)])
    assert len(found.problems) == 20
    assert len(explain(found)) == 7
    assert explain(found)[-2] == "and so on: 16 more files"


def test_this_checkout() -> None:
    root = Path(ownership.__file__).parent.parent
    assert look(root, [str(root)]) == ((), ())


def test_the_exit_code_is_documented() -> None:
    root = Path(ownership.__file__).parent.parent
    run = [sys.executable, "-m", "stream", "--help"]
    result = subprocess.run(run, cwd=root, capture_output=True, text=True, check=True)
    assert f"{EXIT_NOT_OURS} " in result.stdout
