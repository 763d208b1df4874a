"""Settings from a file: defaults, what is refused, and whether the error says enough to mend it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.config import Config, ConfigError, fill, load, store_address


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tracecomb.toml"


def refused(file: Path, text: str, **flags: object) -> str:
    """Why it was refused, after the file's name."""
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, flags)
    return str(caught.value).removeprefix(f"{file}: ")


def test_defaults(file: Path) -> None:
    file.write_text("")
    assert load() == load(file) == Config()


def test_every_setting_can_be_written(file: Path) -> None:
    lines = []
    for table, settings in msgspec.to_builtins(Config()).items():
        lines += [
            f"[{table}]",
            *(f"{key} = {json.dumps(value)}" for key, value in settings.items() if value is not None),
        ]
    file.write_text("\n".join(lines))
    assert load(file) == Config()


def test_values_are_taken(file: Path) -> None:
    file.write_bytes(
        b'\xef\xbb\xbf[replay]\r\nprompt = "support/{agent}"\nbatch_size = 40\n[learning]\nmax_wait = 5\n'
        b"[controller]\ncandidates = [4, 8, 16]\n"
    )
    config = load(file)
    assert (config.replay.prompt, config.replay.batch_size, config.learning.max_wait) == ("support/{agent}", 40, 5.0)
    assert config.controller.candidates == (4, 8, 16)


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[replay]\nbatch_sise = 3", "replay.batch_sise", "replay.batch_size"),
        ("[learning]\nseed = 3", "learning.seed", "replay.seed"),
        ("batch_size = 3", "batch_size", "replay.batch_size"),
        ("[controler]\ntau = 0.1", "controler", "controller"),
        ("[replay.controller]\ntau = 0.1", "replay.controller", "controller"),
    ],
)
def test_unknown_key_names_the_nearest(file: Path, text: str, key: str, nearest: str) -> None:
    assert refused(file, text) == f"{key} is not a setting; the nearest one is {nearest}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "[replay]\nbatch_size = 'all'",
            'replay.batch_size is "all"; allowed: "auto" or a whole number from 1 to 10,000',
        ),
        ("[replay]\nbatch_size = 0", 'replay.batch_size is 0; allowed: "auto" or a whole number from 1 to 10,000'),
        ("[replay]\nseed = 2000-01-01", 'replay.seed is "2000-01-01"; allowed: a whole number from 0 to 9,223'),
        ("[replay]\nmethod = 'ace'", 'replay.method is "ace"; allowed: "model-free"'),
        ("[replay]\nprompt = '{agnt}'", 'replay.prompt is "{agnt}"; allowed: a prompt\'s name'),
        ("[replay]\nprompt = 'x}'", 'replay.prompt is "x}"; allowed: a prompt\'s name'),
        ("[replay]\nprompt = '{agent!r}'", 'replay.prompt is "{agent!r}"; allowed: a prompt\'s name'),
        ("[replay]\nforce_prompt = ''", 'replay.force_prompt is ""; allowed: a prompt\'s name'),
        ("[learning]\ncopies = true", "learning.copies is true; allowed: a whole number from 1 to 10"),
        ("[learning]\nmax_wait = inf", "learning.max_wait is Infinity; allowed: seconds"),
        ("[controller]\ncandidates = [8, 16, 16]", "controller.candidates is [8, 16, 16]; allowed: three or more"),
        ("[controller]\ncandidates = [0, 16, 32]", "controller.candidates is [0, 16, 32]; allowed: three or more"),
        ("[controller]\ntau = nan", "controller.tau is NaN; allowed: a number between 0 and 1"),
        ("[rejects]\nshare = 1.5", "rejects.share is 1.5; allowed: a number over 0, at most 1"),
        ("[text]\ncounters = 1", "text.counters is 1; allowed: true or false"),
        ("replay = 3", "replay is 3; allowed: a table"),
        ("[replay", "not TOML: "),
    ],
)
def test_refused_values_say_what_is_allowed(file: Path, text: str, error: str) -> None:
    assert refused(file, text).startswith(error)


def test_unreadable_files(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracecomb\.toml: No such file"):
        load(file)
    with pytest.raises(ConfigError, match="Is a directory"):
        load(file.parent)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not TOML"):
        load(file)


def test_flags_go_before_the_file(file: Path) -> None:
    file.write_text("[replay]\nseed = 1\nprompt = 'from-file'")
    replay = load(file, {"prompt": "from-flag", "batch_size": 8}).replay
    assert (replay.seed, replay.prompt, replay.batch_size) == (1, "from-flag", 8)


def test_refused_flags_are_named_as_flags(file: Path) -> None:
    assert refused(file, "", batch_size=0).startswith("--batch-size is 0; allowed:")
    assert refused(file, "", force_prompt="{}").startswith('--force-prompt is "{}"; allowed:')
    assert refused(file, "[replay]\nseed = -1", batch_size=0).startswith("replay.seed is -1")


@pytest.mark.parametrize(
    ("template", "agent", "prompt"),
    [
        ("support/{agent}", "bot", "support/bot"),
        ("{agent}", "a{b}c", "a{b}c"),
        ("{{{agent}}}", "bot", "{bot}"),
        ("fixed", "", "fixed"),
        ("support/{agent}", "", ""),
    ],
)
def test_fill(template: str, agent: str, prompt: str) -> None:
    assert fill(template, agent) == prompt


@given(st.text(alphabet="{}agent!:0 [].", min_size=1))
def test_a_template_that_is_allowed_can_be_filled(template: str) -> None:
    try:
        load(flags={"prompt": template})
    except ConfigError:
        return
    assert fill(template, "bot")


def test_store_address() -> None:
    assert store_address("here", {"TRACECOMB_AT": "there"}) == "here"
    assert store_address(None, {"TRACECOMB_AT": "there"}) == "there"
    assert store_address(None, {"TRACECOMB_AT": ""}) == store_address(None, {}) == "./tracecomb.d"
