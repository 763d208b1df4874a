"""Settings from a file: defaults, what is refused, and whether the error says enough to mend it."""

from __future__ import annotations

import json
import re
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from operators.controller import BatchSizes
from operators.settings import Settings
from operators.version import SNAPSHOT_EVERY
from stream.config import Config, ConfigError, fill, load, store_address
from stream.replay import settings_of
from tests.conftest import ROOT


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


# The numbers of design.md, learning.md and the issue, written out once more: a default that drifts is to be noticed.
PROMISED: dict[str, dict[str, Any]] = {
    "replay": {"seed": 0, "batch_size": "auto", "method": "model-free", "prompt": None, "force_prompt": None},
    "learning": {
        "max_staleness": 1,
        "copies": 2,
        "support_traces": 1,
        "support_sessions": 1,
        "token_budget": 80_000,
        "fold_every": 20,
        "max_wait": 60.0,
        "open_traces": 20_000,
        "fan_in": 50,
    },
    "controller": {"candidates": (8, 16, 32, 64, 128), "windows_per_size": 3, "tau": 0.016},
    "rejects": {"share": 0.2, "after": 1_000, "run": 500},
    "text": {"counters": False},
}


def test_the_defaults_are_those_promised() -> None:
    found = msgspec.to_builtins(Config())
    assert {table: found[table] for table in PROMISED} == PROMISED


def test_the_defaults_of_the_operators_are_those_promised() -> None:
    mine = msgspec.structs.asdict(Settings())
    # Without a clock nothing waits: only who has one sets this, from [learning].
    assert mine.pop("max_wait") is None
    assert mine.pop("straggler_deadline") is None
    assert (mine.pop("fold_after"), mine.pop("in_flight"), SNAPSHOT_EVERY) == (50, 64, 50)
    # All others stand in the configuration, under the same names.
    configured = {key: value for table in PROMISED.values() for key, value in table.items()}
    assert mine == {key: configured[key] for key in mine}
    assert settings_of(Config()) == Settings()


def test_every_setting_of_the_operators_is_taken_from_the_file(file: Path) -> None:
    lines = {
        "replay": "seed = 9",
        "learning": "max_staleness = 3\ncopies = 4\nsupport_traces = 5\nsupport_sessions = 2\ntoken_budget = 700\n"
        "fold_every = 8\nopen_traces = 11\nfan_in = 6\nmax_wait = 7.5",
        "text": "counters = true",
    }
    file.write_text("\n".join(f"[{table}]\n{keys}" for table, keys in lines.items()))
    assert settings_of(load(file)) == Settings(
        seed=9,
        max_staleness=3,
        copies=4,
        support_traces=5,
        support_sessions=2,
        token_budget=700,
        fold_every=8,
        open_traces=11,
        fan_in=6,
        counters=True,
    )


def test_the_controller_has_the_same_defaults_wherever_it_is_made() -> None:
    own = {name: each.default for name, each in signature(BatchSizes).parameters.items()}
    assert own["candidates"] == (8, 16, 32, 64, 128)
    assert (own["windows_per_size"], own["share"]) == (3, 0.016)


def test_the_example_in_the_readme_shows_the_defaults(file: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    file.write_text(example)
    shown = load(file)
    # The one value that is no default: a template, for the default is to have none.
    assert shown.replay.prompt == "support/{agent}"
    assert replace(shown, replay=replace(shown.replay, prompt=None)) == Config()


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
