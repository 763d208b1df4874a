"""``import`` and ``rollback``: what becomes a version, what it holds, and what comes back out of the store."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from stream.formats import FORMATS, read
from tests.stream.logs import Log
from tests.stream.running import Ran, tracecomb

LOG = Log(count=60, prompts=1, bare=True)
PROMPT = "shop/0"
SKILL = {
    "id": "strategies-00001",
    "section": "strategies",
    "content": "Look up the order first",
    "justification": "it failed",
    "evidence": "run 7",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-02T00:00:00Z",
    "status": "active",
    "sources": [{"run": 7}],
}
SKILLBOOK: dict[str, Any] = {
    "skills": {
        "strategies-00001": SKILL,
        "strategies-00002": {**SKILL, "id": "strategies-00002", "content": "Guess", "status": "invalid"},
    },
    "sections": {"strategies": ["strategies-00001", "strategies-00002"]},
    "next_id": 2,
    "similarity_decisions": {"a,b": {"decision": "KEEP", "reasoning": "both"}},
}
LESSON = "Amounts are in cents: 10.00 is 1000"
FILES: dict[str, tuple[str, str]] = {
    "ace": ("ace", f"## STRATEGIES & INSIGHTS\n[str-00003] helpful=5 harmful=2 :: {LESSON}\n"),
    "ace-with-preamble": (
        "ace",
        f"Read this first.\n\n## STRATEGIES & INSIGHTS\n[str-00003] helpful=5 harmful=2 :: {LESSON}\n\n## OTHERS\n",
    ),
    "curator": (
        "ace-json",
        json.dumps({"reasoning": "why", "operations": [{"type": "ADD", "section": "S", "content": LESSON}]}),
    ),
    "bullets": ("ace-json", json.dumps([{"id": "s-00003", "section": "S", "content": LESSON, "helpful": 5}])),
    "appworld": ("appworld", f"## STRATEGIES & INSIGHTS\n[shr-00009] {LESSON}\n"),
    "update": (
        "json",
        json.dumps(
            {
                "prompt": "elsewhere",
                "version": 8,
                "bullets": [{"id": "str-00003", "section": "S", "content": LESSON, "helpful": 5, "harmful": 2}],
            }
        ),
    ),
    "markdown": ("markdown", f"# Book\n\n## Strategies\n\n- {LESSON}\n"),
    "our-markdown": (
        "markdown",
        f"By hand.\n\n<!-- tracecomb:begin -->\n\n## S\n\n- {LESSON}\n\n<!-- tracecomb:end -->\n\n- not this\n",
    ),
    "skillbook": ("skillbook", json.dumps(SKILLBOOK)),
    "old-skillbook": (
        "skillbook",
        json.dumps({"bullets": {"s-00003": {"id": "s-00003", "section": "s", "content": LESSON, "helpful": 5}}}),
    ),
}


@pytest.fixture
def at(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has learned; not to be changed."""
    folder = tmp_path_factory.mktemp("changes")
    log = LOG.write(folder / "log.jsonl")
    tracecomb("replay", log, "--at", folder / "store", "--batch-size", "10").succeeded()
    return folder / "store"


@pytest.fixture
def store(learned: Path, at: Path) -> Path:
    """A store that has learned."""
    return Path(shutil.copytree(learned, at))


def merge(file: Path, at: Path, *more: str, prompt: str = "p") -> Ran:
    return tracecomb("import", file, "--prompt", prompt, "--at", at, *more)


def newest(at: Path, prompt: str = "p") -> dict[str, Any]:
    found: dict[str, Any] = tracecomb("show", prompt, "--format", "json", "--at", at).succeeded().json
    return found


def ids(update: dict[str, Any]) -> dict[str, str]:
    """The display id of each lesson."""
    return {each["content"]: each["id"] for each in update["bullets"]}


@pytest.mark.parametrize("name", FILES)
class TestImportOfEachFormat:
    def test_twice_makes_no_version(self, tmp_path: Path, at: Path, name: str) -> None:
        format, text = FILES[name]
        file = tmp_path / "book"
        file.write_text(text)
        ran = merge(file, at).succeeded()
        assert ran.text == f"p: version 1 has 1 bullet, 1 bullet of {file} merged in\n"
        update = newest(at)
        expected = read(text.encode(), "book")
        assert expected.format == format
        (bullet,) = update["bullets"]
        (wanted,) = expected.bullets
        assert (update["kind"], update["changed"], update["base"]) == ("import", True, 0)
        assert [bullet[key] for key in ("section", "content", "helpful", "harmful")] == [
            wanted.section,
            wanted.content,
            wanted.helpful,
            wanted.harmful,
        ]
        assert bullet["id"] == wanted.id or not wanted.id
        before = {path: path.read_bytes() for path in at.rglob("*") if path.is_file()}
        for again in (merge(file, at), merge(file, at, "--format", format)):
            assert again.succeeded().text == "p: version 1 has all of it already, no new version\n"
        assert {path: path.read_bytes() for path in at.rglob("*") if path.is_file()} == before

    def test_a_round_trip_through_the_store(self, tmp_path: Path, at: Path, name: str) -> None:
        format, text = FILES[name]
        file, out = tmp_path / "book", tmp_path / "out"
        file.write_text(text)
        merge(file, at).succeeded()
        tracecomb("export", "p", "--format", format, "-o", out, "--at", at).succeeded()
        back, before = read(out.read_bytes(), format=format), read(text.encode(), "book", format)
        assert [(each.section, each.content, each.helpful, each.harmful) for each in back.bullets] == [
            (each.section, each.content, each.helpful, each.harmful) for each in before.bullets
        ]
        if format not in ("json", "skillbook"):  # ours says where it came from; a skillbook gets counts
            assert back.extra == before.extra
        merge(out, Path(f"{at}2")).succeeded()
        assert newest(Path(f"{at}2"))["text"] == newest(at)["text"]
        assert merge(out, at).text == "p: version 1 has all of it already, no new version\n"


class TestImport:
    def test_a_skillbook_comes_back_with_all_it_held(self, tmp_path: Path, at: Path) -> None:
        file = tmp_path / "book.json"
        file.write_text(json.dumps(SKILLBOOK))
        ran = merge(file, at).succeeded()
        assert "1 skills are not active there" in ran.err
        back = tracecomb("export", "p", "--format", "skillbook", "--at", at).succeeded()
        assert json.loads(back.text) == SKILLBOOK

    def test_what_an_older_version_held_comes_back_with_it(self, tmp_path: Path, at: Path) -> None:
        first, second = tmp_path / "1.txt", tmp_path / "2.txt"
        first.write_text("One.\n\n## OTHERS\n[o-00001] helpful=1 harmful=0 :: a lesson\n")
        second.write_text("Two.\n\n## OTHERS\n[o-00002] helpful=1 harmful=0 :: another\n")
        merge(first, at).succeeded()
        merge(second, at).succeeded()
        tracecomb("rollback", "p", "--to", "1", "--at", at).succeeded()
        ace = [tracecomb("export", "p", "--version", str(number), "--at", at).text for number in range(4)]
        assert ace[0] == ""
        assert ace[1] == ace[3] == first.read_text()
        assert ace[2].startswith("Two.\n\n## OTHERS\n[o-00001] helpful=1 harmful=0 :: a lesson\n[o-00002] ")

    def test_it_merges_and_keeps_ids_that_are_free(self, tmp_path: Path, store: Path) -> None:
        before = ids(newest(store, PROMPT))
        taken = min(before.values())
        file = tmp_path / "book.txt"
        file.write_text(
            f"## COMMON MISTAKES TO AVOID\n[{taken}] helpful=3 harmful=0 :: New under an id that is taken\n"
            "[err-09000] helpful=0 harmful=1 :: New under an id that is free\n"
        )
        merge(file, store, prompt=PROMPT).succeeded()
        after = ids(newest(store, PROMPT))
        assert {content: after[content] for content in before} == before
        assert len(after) == len(before) + 2
        assert after["New under an id that is free"] == "err-09000"
        assert after["New under an id that is taken"] not in {*before.values(), "err-09000"}
        # What is learned later goes on after the highest number.
        log = Log(count=40, seed=3, prompts=1, bare=True).write(tmp_path / "more.jsonl")
        tracecomb("replay", log, "--at", store, "--batch-size", "10").succeeded()
        update = newest(store, PROMPT)
        fresh = [each["id"] for each in update["bullets"] if each["id"] not in after.values()]
        assert fresh
        assert all(int(id.rpartition("-")[2]) > 9000 for id in fresh)
        assert len({each["id"] for each in update["bullets"]}) == len(update["bullets"])

    @pytest.mark.parametrize("format", FORMATS)
    def test_an_export_that_was_edited_is_merged_in_again(self, tmp_path: Path, store: Path, format: str) -> None:
        before = newest(store, PROMPT)
        out = tracecomb("export", PROMPT, "--format", format, "--at", store).succeeded().text
        edited = out.replace("put right", "mended", 1)
        assert edited != out
        file = tmp_path / "out"
        # A key in the file makes it another wording of the same lesson, of which the smallest is shown.
        for text, new in ((out, 0), (edited, format != "json")):
            file.write_text(text)
            merge(file, store, "--format", format, prompt=PROMPT).succeeded()
            update = newest(store, PROMPT)
            assert len(update["bullets"]) == len(before["bullets"]) + new
            known = {each["bullet"]: each["id"] for each in update["bullets"]}
            assert {each["bullet"]: each["id"] for each in before["bullets"]}.items() <= known.items()
            assert "no new version" in merge(file, store, "--format", format, prompt=PROMPT).succeeded().text

    def test_counts_of_two_imports_add_up_and_of_one_do_not(self, tmp_path: Path, at: Path) -> None:
        first, second = tmp_path / "1.txt", tmp_path / "2.txt"
        first.write_text("## OTHERS\n[o-00001] helpful=2 harmful=0 :: a lesson\n")
        second.write_text("## OTHERS\n[o-00001] helpful=3 harmful=1 :: a lesson\n")
        for file in (first, second, first, second):
            merge(file, at).succeeded()
        update = newest(at)
        assert update["version"] == 2
        assert [(each["helpful"], each["harmful"]) for each in update["bullets"]] == [(5, 1)]
        assert update["changed"] is False  # agents see no counts

    def test_after_a_rollback_it_is_made_again(self, tmp_path: Path, at: Path) -> None:
        file = tmp_path / "book.md"
        file.write_text("- a lesson\n- another\n")
        merge(file, at).succeeded()
        tracecomb("rollback", "p", "--to", "0", "--at", at).succeeded()
        assert newest(at)["bullets"] == []
        assert merge(file, at).succeeded().text.startswith("p: version 3 has 2 bullets, 2 bullets of ")
        assert ids(newest(at)) == {"a lesson": "misc-00001", "another": "misc-00002"}

    def test_from_stdin(self, at: Path) -> None:
        text = "## OTHERS\n[o-00001] helpful=2 harmful=0 :: a lesson\n"
        ran = tracecomb("import", "-", "--prompt", "p", "--at", at, stdin=text.encode()).succeeded()
        assert "1 bullet of - merged in" in ran.text
        assert tracecomb("export", "p", "--at", at).succeeded().text == text

    def test_what_is_left_out_is_told(self, tmp_path: Path, at: Path) -> None:
        file = tmp_path / "book.json"
        adds = [{"type": "ADD", "section": "S", "content": f"lesson {number}"} for number in range(2)]
        file.write_text(
            json.dumps({"operations": [*adds, {"type": "DELETE", "bullet_id": "x"}, *[{"type": "NO"}] * 40]})
        )
        ran = merge(file, at).succeeded()
        lines = ran.err.splitlines()
        assert lines[0] == (
            f"tracecomb: {file}: operations[2] left out: DELETE changes bullets that are there; an import only adds"
        )
        assert lines[-1] == f"tracecomb: {file}: and so on, 21 more"
        assert len(lines) == 21

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", "the file is empty: there is no playbook to import"),
            ("hello", "no playbook in it: neither JSON, nor bullets"),
            ('{"a": 1}', "the JSON is no playbook"),
            ('{"steps": []}\n{"steps": []}', "JSON lines are trace logs, which `tracecomb replay` reads"),
            ('{"operations": []}', "no bullet in it (read as ace-json), so nothing was imported"),
            ("\0\xff", "not a text file"),
            ("- ...\n- !\n", "no bullet in it (read as markdown), so nothing was imported"),
        ],
    )
    def test_what_is_no_playbook(self, tmp_path: Path, at: Path, text: str, told: str) -> None:
        file = tmp_path / "book"
        file.write_bytes(text.encode("latin-1"))
        ran = merge(file, at)
        assert ran.code == 1
        assert ran.err.splitlines()[-1].startswith(f"tracecomb: {file}: ")
        assert told in ran.err
        assert not at.exists()

    def test_no_such_file(self, tmp_path: Path, at: Path) -> None:
        assert merge(tmp_path / "gone", at).failed(1) == f"tracecomb: {tmp_path / 'gone'}: No such file or directory"
        assert merge(tmp_path, at).failed(1) == f"tracecomb: {tmp_path}: Is a directory"
        assert not at.exists()

    def test_beyond_the_budget(self, tmp_path: Path, at: Path) -> None:
        file, config = tmp_path / "book.md", tmp_path / "c.toml"
        file.write_text("".join(f"- lesson {number} about the matter of length {'x' * 200}\n" for number in range(50)))
        config.write_text("[learning]\ntoken_budget = 1000\n")
        ran = merge(file, at, "--config", str(config)).succeeded()
        found = re.fullmatch(
            r"tracecomb: (\d+) bullets beyond the budget of 1,000 tokens went, .*token_budget.*\n", ran.err
        )
        assert found is not None
        assert len(newest(at)["bullets"]) == 50 - int(found[1]) > 0
        again = merge(file, at, "--config", str(config)).succeeded()
        assert "no new version" in again.text
        assert f"{found[1]} bullets of it are not shown any more" in again.err

    def test_a_budget_that_is_given_counts_though_a_replay_had_another(self, tmp_path: Path, at: Path) -> None:
        tracecomb("replay", LOG.write(tmp_path / "log.jsonl"), "--at", at).succeeded()
        file, config = tmp_path / "book.md", tmp_path / "c.toml"
        file.write_text("".join(f"- lesson {number} about the matter of length {'x' * 200}\n" for number in range(50)))
        config.write_text("[learning]\ntoken_budget = 1000\n")
        assert "beyond the budget of 1,000 tokens" in merge(file, at, "--config", str(config)).succeeded().err
        assert "beyond the budget" not in merge(file, at, prompt="other").succeeded().err

    def test_the_stores_own_settings_count(self, tmp_path: Path, at: Path) -> None:
        config = tmp_path / "c.toml"
        config.write_text("[text]\ncounters = true\n[replay]\nbatch_size = 10\n")
        log = LOG.write(tmp_path / "log.jsonl")
        tracecomb("replay", log, "--at", at, "--config", config).succeeded()
        book = tmp_path / "book.md"
        book.write_text("- a lesson\n")
        merge(book, at, prompt=PROMPT).succeeded()
        assert "helpful=" in newest(at, PROMPT)["text"]
        tracecomb("rollback", PROMPT, "--to", "1", "--at", at).succeeded()
        assert "helpful=" in newest(at, PROMPT)["text"]


class TestRollback:
    def test_to_every_version(self, store: Path) -> None:
        last = newest(store, PROMPT)["version"]
        shown = {
            number: tracecomb("show", PROMPT, "--version", str(number), "--format", "ace", "--at", store).text
            for number in range(last + 1)
        }
        for made, number in enumerate(range(last + 1), last + 1):
            ran = tracecomb("rollback", PROMPT, "--to", str(number), "--at", store).succeeded()
            assert ran.text.startswith(f"{PROMPT}: version {made} has the lessons of version {number} (")
            assert tracecomb("show", PROMPT, "--format", "ace", "--at", store).text == shown[number]
            update = newest(store, PROMPT)
            assert (update["kind"], update["version"], update["base"]) == ("rollback", made, number)
        # The last one was to itself.
        tracecomb("rollback", PROMPT, "--to", str(made), "--at", store).succeeded()
        assert newest(store, PROMPT)["changed"] is False

    def test_the_same_lessons(self, store: Path) -> None:
        last = newest(store, PROMPT)["version"]
        ran = tracecomb("rollback", PROMPT, "--to", str(last), "--at", store).succeeded()
        assert f"has the lessons of version {last}, which are those it had (" in ran.text

    def test_ids_given_later_are_not_given_again(self, store: Path, tmp_path: Path) -> None:
        before = newest(store, PROMPT)
        tracecomb("rollback", PROMPT, "--to", "1", "--at", store).succeeded()
        log = Log(count=60, seed=8, prompts=1, bare=True).write(tmp_path / "more.jsonl")
        tracecomb("replay", log, "--at", store, "--batch-size", "10").succeeded()
        old, new = (
            {each["bullet"]: each["id"] for each in update["bullets"]} for update in (before, newest(store, PROMPT))
        )
        assert old.keys() & new.keys()
        assert {bullet: new[bullet] for bullet in old.keys() & new.keys()}.items() <= old.items()
        assert new.keys() - old.keys()
        assert {id for bullet, id in new.items() if bullet not in old}.isdisjoint(old.values())

    def test_the_same_log_teaches_nothing_after_it(self, store: Path, tmp_path: Path) -> None:
        tracecomb("rollback", PROMPT, "--to", "0", "--at", store).succeeded()
        log = LOG.write(tmp_path / "log.jsonl")
        ran = tracecomb("replay", log, "--at", store, "--batch-size", "10", "--json").succeeded()
        assert (ran.json["updates"], ran.json["duplicates"]) == (0, 60)
        assert newest(store, PROMPT)["bullets"] == []

    def test_what_cannot_be(self, store: Path, at: Path) -> None:
        before = {path: path.read_bytes() for path in at.rglob("*") if path.is_file()}
        assert "has versions 1 to 6, not 7" in tracecomb("rollback", PROMPT, "--to", "7", "--at", store).failed(4)
        assert "has versions 1 to 6, not -1" in tracecomb("rollback", PROMPT, "--to", "-1", "--at", store).failed(4)
        assert "holds no prompt 'p'" in tracecomb("rollback", "p", "--to", "0", "--at", store).failed(4)
        assert {path: path.read_bytes() for path in at.rglob("*") if path.is_file()} == before

    def test_an_import_is_taken_back_and_what_was_learned_before_is_not(self, store: Path, tmp_path: Path) -> None:
        before = newest(store, PROMPT)
        book = tmp_path / "book.md"
        book.write_text("- a lesson nobody wanted\n")
        merge(book, store, prompt=PROMPT).succeeded()
        tracecomb("rollback", PROMPT, "--to", str(before["version"]), "--at", store).succeeded()
        assert newest(store, PROMPT)["text"] == before["text"]
