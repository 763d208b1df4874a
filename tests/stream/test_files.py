from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.files import Bad, Found, Record, Skipped, TraceFiles
from stream.frames import MAX_RAW
from stream.sift import GIVE_UP_VALUES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP = {"role": "user", "content": "x"}
MESSAGES = [{"role": "user", "content": "Refund"}, {"role": "assistant", "content": "Done"}]
NO_JSON = "line 1: invalid JSON at character 1: expecting value"


def own(name: Any = None, **more: Any) -> dict[str, Any]:
    return {**({} if name is None else {"id": name}), "steps": [STEP], **more}


def dump(*rows: Any, indent: int | None = None, end: str = "\n") -> bytes:
    return "".join(json.dumps(row, indent=indent) + end for row in rows).encode()


def read(*paths: Path | str, **options: Any) -> list[Record]:
    return [record for chunk in TraceFiles(paths, **options) for record in chunk]


def read_bytes(data: bytes) -> list[Record]:
    return read("-", stdin=io.BytesIO(data))


def ids(records: list[Record]) -> list[str]:
    assert all(isinstance(record, Found) for record in records), records
    return [record.trace.id for record in records if isinstance(record, Found)]


def kinds(records: list[Record]) -> Counter[str]:
    return Counter(type(record).__name__ for record in records)


# What a file may hold.


def test_json_lines_of_both_formats_mixed() -> None:
    records = read_bytes(dump(own("a"), {"id": "b", "messages": MESSAGES}, own("c"), {"id": "d", "messages": MESSAGES}))
    assert ids(records) == ["a", "b", "c", "d"]
    assert [record.line for record in records if isinstance(record, Found)] == [1, 2, 3, 4]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document",
    [
        own("a"),
        [own("a")],
        {"id": "a", "messages": MESSAGES},
        [{"id": "a", "messages": MESSAGES}],
        [own("a"), own("b")],
    ],
)
def test_documents_and_arrays(document: Any, indent: int | None) -> None:
    expected = ["a", "b"] if isinstance(document, list) and len(document) == 2 else ["a"]
    for end in ("", "\n"):
        assert ids(read_bytes(dump(document, indent=indent, end=end))) == expected


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("rows", [[MESSAGES], [MESSAGES, MESSAGES], [[MESSAGES, MESSAGES]]])
def test_a_list_of_messages_is_one_trace(rows: list[Any], indent: int | None) -> None:
    """So is each of several, as lines, as documents in a row, and in an array."""
    records = read_bytes(dump(*rows, indent=indent))
    assert len(ids(records)) == (1 if rows == [MESSAGES] else 2)
    assert len(set(ids(records))) == 1
    assert {record.trace.task for record in records if isinstance(record, Found)} == {"Refund"}


def test_pretty_printed_documents_one_after_another() -> None:
    assert ids(read_bytes(dump(own("a"), own("b"), own("c"), indent=4))) == ["a", "b", "c"]


def test_an_array_with_a_row_a_line() -> None:
    assert ids(read_bytes(b"[" + b",\n".join(dump(own(name), end="") for name in "abc") + b"]")) == ["a", "b", "c"]


def test_names_say_nothing_about_formats(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_bytes(dump(own("a"), own("b")))
    (tmp_path / "2.jsonl").write_bytes(dump(own("c"), own("d"), indent=2))
    (tmp_path / "3").write_bytes(dump([own("e")], indent=2))
    (tmp_path / "4.txt.gz").write_bytes(dump(own("f")))
    (tmp_path / "5.jsonl").write_bytes(gzip.compress(dump(own("g"))))
    (tmp_path / "6.md").write_bytes(zstd.compress(dump(own("h"))))
    assert ids(read(tmp_path)) == list("abcdefgh")


def test_a_long_array_on_one_line_is_streamed() -> None:
    rows = [own(str(number), task="x" * 1_000) for number in range(3_000)]
    assert ids(read_bytes(dump(rows))) == [str(number) for number in range(3_000)]


# Damage.


@pytest.mark.parametrize(
    ("raw", "mark"),
    [
        (b'\xef\xbb\xbf{"id": "a", "steps": []}', "byte order mark"),
        (b'{"id": "a", "steps": [{"role": "user", "content": "\\ud83d"}]}', "lone surrogate"),
        (b'{"id": "a", "steps": [{"role": "user", "content": "\xff"}]}', "invalid UTF-8"),
        (b'{"id": "a", "steps": [{"role": "user", "content": "\x01"}]}', "control character"),
        (b'{"id": "a", "steps": [], "outcome": {"reward": NaN}}', "NaN"),
        (b'{"id": "a", "messages": [{"role": "user", "content": "x", "logprobs": -Infinity}]}', "infinity"),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_damaged_lines_are_repaired_and_marked(raw: bytes, mark: str, end: bytes) -> None:
    (record,) = read_bytes(raw + end)
    assert isinstance(record, Found)
    assert (record.trace.id, record.repaired) == ("a", (mark,))
    msgspec.json.encode(record.trace).decode()


def test_line_ends() -> None:
    row = json.dumps(own("b", task="a\u2028b\u2029c\x85d"), ensure_ascii=False).encode()
    records = read_bytes(dump(own("a"), end="\r\n") + b"\r\n \t\n" + row + b"\n\n" + dump(own("c"), end=""))
    assert ids(records) == ["a", "b", "c"]
    assert [record.line for record in records if isinstance(record, Found)] == [1, 4, 6]


def test_a_line_of_megabytes() -> None:
    record, last = read_bytes(dump(own("a", task="é" * 3_000_000), own("b")))
    assert isinstance(record, Found)
    assert isinstance(last, Found)
    assert (len(record.trace.task), last.line) == (3_000_000, 2)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"id": "b", "steps": [{"ro', "invalid JSON"),
        (b'ole": "user"}]}', "invalid JSON"),
        (b"\0\0\0", "invalid JSON"),
        (b"{} {}", "invalid JSON"),
        (b"12", "a number or a truth value: no reader knows it"),
        (b'"steps"', "text: no reader knows it"),
        (b"[]", "an empty list: no reader knows it"),
        (b"{}", "an empty object: no reader knows it"),
        (b'{"a\\u001b": 1}', "an object with the fields a\ufffd: no reader knows it"),
        (b'{"schema": 1, "steps": 4}', "tracecomb: steps is not a list"),
        (b'{"steps": [{"role": "user"}, 5]}', "tracecomb: step 2 is not an object"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "nested deeper than 200 levels"),
        (b"[" * 201 + b"]" * 201, "nested deeper than 200 levels"),
        (b'{"steps": [{"calls": [{"arguments": %s1%s}]}]}' % (b"[" * 300, b"]" * 300), "nested deeper than 200 levels"),
    ],
    ids=range(14),
)
def test_bad_lines_say_where_and_why(raw: bytes, reason: str) -> None:
    first, bad, last = read_bytes(dump(own("a")) + raw + b"\n" + dump(own("c")))
    assert ids([first, last]) == ["a", "c"]
    assert isinstance(bad, Bad)
    assert (bad.file, bad.line, bad.raw) == ("-", 2, raw)
    assert reason in bad.reason


@pytest.mark.parametrize(
    "raw", [b'content": "x"}]}', b'{"id": "b", "steps": [{"ro', b'{"id": "b",', b"time=1 starting up", b"[[[[}"]
)
def test_a_bad_first_line_costs_only_itself(raw: bytes) -> None:
    bad, found = read_bytes(raw + b"\n" + dump(own("a")))
    assert isinstance(bad, Bad)
    assert (bad.line, bad.raw) == (1, raw)
    assert ids([found]) == ["a"]


def test_a_bad_row_of_an_array_costs_only_itself() -> None:
    data = b"[\n" + b",\n".join([dump(own("a"), end=""), b'{"steps": oops}', b"7", dump(own("b"), end="")]) + b"\n]"
    first, bad, seven, last = read_bytes(data)
    assert ids([first, last]) == ["a", "b"]
    assert isinstance(bad, Bad)
    assert isinstance(seven, Bad)
    assert (bad.line, bad.raw) == (3, b'{"steps": oops}')
    assert seven.reason == "neither an object nor an array"


def test_a_bad_message_costs_its_list() -> None:
    broken = b'[\n{"role": "user", "content": "x"},\n{"role": "user", "content": oops}\n]\n'
    other = b'[\n{"role": "user", "content": "x"},\n{"role": "critic", "content": ""}\n]\n'
    first, second, last = read_bytes(broken + other + dump(MESSAGES, indent=1))
    assert isinstance(first, Bad)
    assert isinstance(second, Bad)
    assert isinstance(last, Found)
    assert first.reason.startswith("element 2: invalid JSON")
    assert second.reason.startswith("openai-messages: ")


def test_bad_bytes_are_kept_up_to_a_bound() -> None:
    _, bad = read_bytes(dump(own("a")) + b"x" * (MAX_RAW + 5))
    assert isinstance(bad, Bad)
    assert bad.raw == b"x" * MAX_RAW


# Files without a trace.


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\n \r\n", "empty"),
        (b"# Notes\n\nSome text\n", f"no JSON in it: {NO_JSON}"),
        (b'{"a": 1, "b": 2}\n' * 9, "no trace in it: an object with the fields a, b: no reader knows it"),
        (dump([{"a": 1}] * 3, indent=1), "no trace in it: an object with the fields a: no reader knows it"),
        (
            dump({str(key): key for key in range(9)}),
            "no trace in it: an object with the fields 0, 1, 2, 3, 4, 5, 6, 7, …: no reader knows it",
        ),
        (b'oops\n{"a": 1}\n', "no trace in it: an object with the fields a: no reader knows it"),
        (b'{"steps": [{"role": "us', "no JSON in it: line 1: invalid JSON at character 21: unterminated string"),
        (b'{"schema": 1, "steps": 1}', "no trace in it: line 1: tracecomb: steps is not a list"),
        (b"[]", "no trace in it: an empty list: no reader knows it"),
        (b"[\n]", "no JSON in it: line 2: an empty list"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\n\x07\x00\x01", "not text"),
        ('{"steps": []}'.encode("utf-16"), "text in UTF-16: convert it to UTF-8 first"),
        (b"oops\n" * GIVE_UP_VALUES * 3, f"no JSON in its first 1,000 values: {NO_JSON}"),
        (b"{}\n" * GIVE_UP_VALUES * 3, "no trace in its first 1,000 values: an empty object: no reader knows it"),
        (dump([{}] * 3_000), "no trace in its first 1,000 values: an empty object: no reader knows it"),
        (dump([{}] * 3_000, indent=0), "no trace in its first 1,000 values: an empty object: no reader knows it"),
    ],
    ids=range(19),
)
def test_a_file_without_a_trace_is_one_skipped_file(data: bytes, reason: str) -> None:
    (skipped,) = read_bytes(data)
    assert isinstance(skipped, Skipped)
    assert skipped.reason.startswith(reason)


def test_bad_lines_before_the_first_trace_are_not_lost() -> None:
    records = read_bytes(b"oops\n" * (GIVE_UP_VALUES - 1) + dump(own("a")) + b"oops\n")
    assert kinds(records) == {"Bad": GIVE_UP_VALUES, "Found": 1}
    assert [record.line for record in records if not isinstance(record, Skipped)] == list(range(1, GIVE_UP_VALUES + 2))


# Packed files.


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_packed_files_that_break_off(pack: Any, tmp_path: Path) -> None:
    rows = dump(*(own(str(number), task=os.urandom(200).hex()) for number in range(2_000)))
    packed = pack(rows)
    path = tmp_path / "log"
    path.write_bytes(packed)
    assert len(ids(read(path))) == 2_000
    path.write_bytes(packed + pack(dump(own("more"))))
    assert ids(read(path))[2_000:] == ["more"]
    path.write_bytes(packed[: len(packed) // 2])
    *found, bad = read(path)
    assert 500 < len(ids(found)) < 2_000
    assert isinstance(bad, Bad)
    assert "stream breaks off" in bad.reason
    assert rows.split(b"\n")[bad.line - 1].startswith(bad.raw)
    path.write_bytes(packed[: len(packed) // 2] + bytes(5_000))
    assert isinstance(read(path)[-1], Bad)
    path.write_bytes(packed[:6])
    (skipped,) = read(path)
    assert isinstance(skipped, Skipped)
    assert "breaks off" in skipped.reason


def test_a_file_that_packs_to_almost_nothing(tmp_path: Path) -> None:
    """100 MB of one line, of which no more than the longest line that is read is ever held."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(dump(own("a")))
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    found, bad = read(path)
    assert ids([found]) == ["a"]
    assert isinstance(bad, Bad)
    assert bad.reason.startswith(f"{100 << 20} bytes long")
    assert bad.raw == b"x" * MAX_RAW


# Paths.


def test_folders_in_path_order(tmp_path: Path) -> None:
    for name in ("b/2", "b/10", "a.jsonl", "b.jsonl", "c/d/e", ".hidden/x", "c/.hidden"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(own(name)))
    assert ids(read(tmp_path)) == ["a.jsonl", "b/10", "b/2", "b.jsonl", "c/d/e"]
    assert ids(read(tmp_path / "c" / ".hidden", tmp_path / "b")) == ["c/.hidden", "b/10", "b/2"]
    assert ids(read(tmp_path, exclude=[tmp_path / "b", tmp_path / "not there"])) == ["a.jsonl", "b.jsonl", "c/d/e"]


def test_files_are_named_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a").write_bytes(dump(own("a")))
    monkeypatch.chdir(tmp_path)
    for path, named in (("logs", "logs/a"), ("./logs", "./logs/a"), ("logs/a", "logs/a")):
        assert [record.file for record in read(path)] == [named]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")).write_bytes(dump(own("a")))
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (record,) = read(tmp_path)
    assert record.file.encode().endswith("/\ufffd.jsonl".encode())


def test_links(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "a").write_bytes(dump(own("a")))
    (logs / "1").symlink_to(tmp_path / "a")
    (logs / "2").symlink_to(logs)
    (logs / "3").symlink_to(tmp_path / "nowhere")
    found, skipped = read(logs)
    assert ids([found]) == ["a"]
    assert skipped == Skipped(str(logs / "3"), "cannot be read: No such file or directory")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read(tmp_path) == [Skipped(str(tmp_path / "pipe"), "not a regular file")]
    with pytest.raises(FileNotFoundError):
        TraceFiles([tmp_path / "missing"])


def test_a_given_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[dump(own("a"))], daemon=True)
    writer.start()
    files = TraceFiles([pipe])
    assert files.bytes_total is None
    assert ids([record for chunk in files for record in chunk]) == ["a"]
    writer.join()


def test_a_file_that_is_gone_when_its_turn_comes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(dump(own("a")))
    files = TraceFiles([tmp_path])
    (tmp_path / "a").unlink()
    assert list(files) == [[Skipped(str(tmp_path / "a"), "cannot be read: No such file or directory")]]


REQUEST = {"model": "m", "messages": [MESSAGES[0]]}
RESPONSE = {"id": "c-1", "choices": [{"message": MESSAGES[1], "finish_reason": "stop"}]}


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_a_request_with_its_response_beside_it(tmp_path: Path, packing: str) -> None:
    packers: dict[str, Any] = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}
    request, response = tmp_path / "x.request.json", tmp_path / f"x.response.json{packing}"
    request.write_bytes(dump(REQUEST, indent=2))
    response.write_bytes(packers[packing](dump(RESPONSE)))
    (tmp_path / "y.jsonl").write_bytes(dump(own("y")))
    for paths in ([tmp_path], [request, tmp_path], [response, request, tmp_path]):
        files = TraceFiles(paths)
        records = [record for chunk in files for record in chunk]
        assert ids(records) == ["c-1", "y"]
        assert records[0].file == str(request)
        assert isinstance(records[0], Found)
        assert [step.role for step in records[0].trace.steps] == ["user", "assistant"]
        assert files.bytes_read == files.bytes_total


def test_halves_that_make_no_whole(tmp_path: Path) -> None:
    (tmp_path / "x.request.json").write_bytes(dump(REQUEST))
    (tmp_path / "x.response.json").write_bytes(b'{"id": "c-1", "choi')
    (tmp_path / "y.response.json").write_bytes(dump(RESPONSE))
    (tmp_path / "z.request.json").write_bytes(dump(REQUEST))
    found, half, alone, request = read(tmp_path)
    assert isinstance(found, Found)
    assert isinstance(request, Found)
    assert isinstance(half, Skipped)
    assert isinstance(alone, Skipped)
    assert half.file == str(tmp_path / "x.response.json")
    assert [step.role for step in request.trace.steps] == ["user"]


# Identity.


def test_ids_and_digests() -> None:
    rows = [
        own("a", task="t"),
        own("b", task="t"),
        own("a", task="u"),
        own(task="t"),
        {"task": "t", "other": 1, **own()},
        own("", task="t"),
    ]
    a, b, other, *nameless = [record for record in read_bytes(dump(*rows)) if isinstance(record, Found)]
    assert a.digest == b.digest != other.digest
    assert all(len(record.digest) == 8 for record in (a, b, other, *nameless))
    assert {record.digest for record in nameless} == {a.digest}
    (name,) = {record.trace.id for record in nameless}
    assert len(name) == 32
    assert bytes.fromhex(name)


def test_a_digest_is_of_what_was_read_and_not_of_its_bytes() -> None:
    calls = [{"id": "c", "name": "n", "arguments": {"a": 1, "b": [2]}}]
    row = own(task="é") | {"steps": [{"role": "assistant", "calls": calls}]}
    turned = own(task="é") | {"steps": [{"calls": [{"arguments": {"b": [2], "a": 1}, "name": "n", "id": "c"}]}]}
    forms = [dump(row), dump([row], indent=3), b"\xef\xbb\xbf" + dump(row), dump(turned), dump({**row, "outcome": {}})]
    found = [record for form in forms for record in read_bytes(form) if isinstance(record, Found)]
    assert len(found) == len(forms)
    assert len({(record.digest, record.trace.id) for record in found}) == 1


outcomes = st.fixed_dictionaries(
    {}, optional={"success": st.booleans() | st.none(), "reward": st.integers(0, 1), "feedback": st.just("")}
)
errors = st.sampled_from(["", "no", None]) | st.fixed_dictionaries(
    {}, optional={"kind": st.just(""), "message": st.just("no")}
)
same = st.fixed_dictionaries(
    {
        "steps": st.lists(
            st.fixed_dictionaries({"role": st.just("tool"), "content": st.text("ab")}, optional={"error": errors})
        )
    },
    optional={
        "outcome": outcomes,
        "usage": st.just({}),
        "schema": st.just(1),
        "bullets": st.just([]),
        "version": st.just(1),
    },
)


@given(same)
def test_a_digest_does_not_depend_on_the_way_it_was_read(row: dict[str, Any]) -> None:
    """Lines of ours are decoded at once, rows of a document field by field."""
    (line,) = read_bytes(dump(row))
    (element,) = read_bytes(dump([row], indent=1))
    assert isinstance(line, Found)
    assert isinstance(element, Found)
    assert (line.trace, line.digest) == (element.trace, element.digest)


# Streaming.


@given(
    st.lists(st.sampled_from([b"{}", b"oops", dump(own("a"), end=""), dump({"messages": MESSAGES}, end="")])),
    st.integers(1, 7),
)
def test_chunks_hold_at_most_so_many_and_all_in_order(lines: list[bytes], chunk: int) -> None:
    data = b"\n".join(lines)
    chunks = list(TraceFiles(["-"], stdin=io.BytesIO(data), chunk=chunk))
    assert all(0 < len(records) <= chunk for records in chunks)
    assert [record for records in chunks for record in records] == read_bytes(data)


def test_stdin_is_handed_on_as_it_comes() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        chunks = iter(TraceFiles(["-"], stdin=source))
        for name in ("a", "b"):
            sink.write(dump(own(name)))
            assert ids(next(chunks)) == [name]
        sink.close()
        assert list(chunks) == []


def test_progress(tmp_path: Path) -> None:
    rows = dump(*(own(str(number), task="x" * 900) for number in range(2_000)))
    (tmp_path / "a").write_bytes(rows)
    (tmp_path / "b").write_bytes(gzip.compress(rows))
    (tmp_path / "c").write_bytes(b"\x89PNG")
    files = TraceFiles([tmp_path])
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert (files.files, files.bytes_read, files.bytes_total) == (3, 0, total)
    seen = [files.bytes_read for _ in files]
    assert seen == sorted(seen)
    assert 0 < seen[0] < total
    assert files.bytes_read == total
    assert list(files) == []
    assert files.files == 3
    assert TraceFiles(["-"], stdin=io.BytesIO()).bytes_total is None


def test_large_traces_come_in_smaller_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(dump(*(own(str(number), task="x" * (1 << 20)) for number in range(40))))
    sizes = [len(chunk) for chunk in TraceFiles([path])]
    assert sum(sizes) == 40
    assert max(sizes) < 20


# Anything at all.


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_records(data: bytes) -> None:
    check(read_bytes(data))


lines_of = st.sampled_from(
    [
        b"",
        b" \t",
        b"\r",
        b"{}",
        b"[]",
        b"oops",
        b'{"steps": []}',
        b'{"id": "x", "steps": [{"role": "tool", "error": {"message": "\\udc00"}}]}',
        b'{"messages": [{"role": "user", "content": NaN}]}',
        b'{"messages": [{"role": "tool", "content": "Error: x"}], "reward": 1e999}',
        b'[{"role": "user", "content": "\x02"}]',
        b'{"steps": 1}',
        b"[" * 300,
        b'{"steps": [',
        b"\xff\xfe",
    ]
)


class Slow(io.BytesIO):
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.size if size is None or size < 0 else min(size, self.size))


@given(
    st.lists(lines_of | st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b""))),
    st.booleans(),
    st.integers(1, 9),
)
def test_every_line_is_accounted_for(raws: list[bytes], newline: bool, block: int) -> None:
    """After a first line of ours, so that the file is one of JSON lines with a trace in it."""
    raws = [dump(own("first"), end=""), *raws]
    data = b"\n".join(raws) + (b"\n" if newline else b"")
    records = read("-", stdin=Slow(data, block))
    blank = sum(not raw or raw.isspace() for raw in raws)
    assert len(records) + blank == len(raws)
    assert kinds(records)["Skipped"] == 0
    check(records)
    assert records == read_bytes(data)


@given(st.lists(lines_of), st.sampled_from([gzip.compress, zstd.compress]), st.integers(0, 400), st.binary(max_size=9))
def test_damaged_packed_files_are_records(raws: list[bytes], pack: Any, cut: int, garbage: bytes) -> None:
    check(read_bytes(pack(b"\n".join(raws))[:cut] + garbage))


documents: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([own("a"), {"messages": MESSAGES}, MESSAGES[0], 1, "x", None, {}, []]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["messages", "steps", "a"]), inner),
    max_leaves=8,
)


@given(st.lists(documents, max_size=3), st.sampled_from([None, 0, 2]), st.binary(max_size=3), st.integers(0, 300))
def test_damaged_documents_are_records(rows: list[Any], indent: int | None, garbage: bytes, at: int) -> None:
    data = dump(*rows, indent=indent)
    check(read_bytes(data[:at] + garbage + data[at:]))
    check(read_bytes(data[:at]))


def check(records: list[Record]) -> None:
    """A file is one skipped file, or traces and bad values of which at least one is a trace."""
    assert records
    assert kinds(records)["Skipped"] == 0 or len(records) == 1
    assert kinds(records)["Skipped"] or kinds(records)["Found"]
    for record in records:
        match record:
            case Found(trace=trace):
                assert trace.id
                assert record.line >= 1
                assert msgspec.json.decode(msgspec.json.encode(trace).decode(), type=type(trace)) == trace
            case Bad(reason=reason, line=line):
                assert reason.encode()
                assert line >= 1
            case Skipped(reason=reason):
                assert reason.encode()


# The samples.


def test_all_samples(shared: Path) -> None:
    folder = shared / "traces"
    records = read(folder)
    assert kinds(records)["Bad"] == 0
    assert len({record.file for record in records}) == len(records)
    assert len(records) == sum(path.is_file() for path in folder.rglob("*")) - 1
    found = {Path(record.file).parent.name for record in records if isinstance(record, Found)}
    assert found == {"mini_swe_agent", "openai_messages", "openhands_llm_log"}
    assert records == read(folder)


def test_the_messages_samples(shared: Path) -> None:
    pair, conversation = read(shared / "traces" / "openai_messages")
    assert isinstance(pair, Found)
    assert isinstance(conversation, Found)
    assert pair.trace.id == "chatcmpl-DEF456"
    assert [call.arguments for step in pair.trace.steps for call in step.calls] == [
        {"location": "San Francisco, CA", "unit": "fahrenheit"}
    ]
    assert len(conversation.trace.steps) == 14


def test_folders_may_lie_deeper_than_python_recurses(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(dump(own("a")))
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    try:
        found = [record for chunk in TraceFiles([tmp_path]) for record in chunk if isinstance(record, Found)]
        assert [record.trace.id for record in found] == ["a"]
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)  # what removes folders for pytest recurses
