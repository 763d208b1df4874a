"""Tell a tool's error from a tool's answer where the log has only the text.

Chat-completions messages have no field for it, and a false error teaches a wrong lesson, so an error is only what
plainly says so, at the very start of the text. In order:

1. A field of the message decides, either way: ``is_error``, ``isError``, ``error``, or a ``status`` that is ``error``
   or ``success``.
2. Content that is one JSON object is an error by what stands at its top: ``isError``/``is_error`` true; ``error`` or
   ``errors`` that holds something other than a number; ``status`` ``"error"``; ``success``/``ok`` false beside a text
   that says why. An object without any of these is an answer, whatever words it holds.
3. Content whose first line is a Python traceback's; ``error: …`` or ``fatal: …``; ``SomeError: …`` or
   ``some.module.SomeException: …``; ``Error executing/calling/… X: …``; ``HTTP Error 404…``; ``An error occurred…``;
   ``[Errno 2] …``, if words alone stand before it; ``Invalid … parameter: …``; a shell's ``command not found``; or an
   ``<error>`` element. What follows a colon must be words: ``Error: 0.02`` and ``error: none`` are answers.

No error are: an exit code that is not 0 (``grep`` and ``diff`` answer by it), and these words further down, where they
may be quoted from a file or a log.
"""

from __future__ import annotations

import re
from typing import Any

from operators.values import StepError
from stream.decode import BadJson, decode
from stream.readers.fields import string, text

MESSAGE = 2_000
"""Most characters of an error; all of the text stays in the step's content."""

_JSON = 1 << 20
_WHY = ("message", "reason", "detail", "details", "error_message", "msg")
_LINE = 4_000
_NOTHING = re.compile(r"\W{0,20}(?:none|null|nil|no|no errors?|n/?a|false|undefined|ok)?\W{0,20}", re.I)
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:: (.*))?")
_SHELL = re.compile(
    r"(?:[\w./-]*/)?(?:ba|z|da|k|a)?sh: .*(?:command not found|not found|Permission denied|No such file .*)"
)

_STARTS: tuple[tuple[re.Pattern[str], bool], ...] = (
    # A first line, and whether group 1 holds words of its own that must then say something.
    (re.compile(r"(?:error|fatal|fatal error)\s*:(.*)", re.I), True),
    (
        re.compile(r"error (?:executing|calling|running|invoking|reading|writing|while|during) [^:]{1,160}:(.*)", re.I),
        True,
    ),
    (re.compile(r"(?:HTTP )?error(?: code:?)? [45]\d\d(?: ?[-:({].*)?", re.I), False),
    (re.compile(r"an? (?:\w+ )?error (?:has )?occurred\b.*", re.I), False),
    (re.compile(r"(?:[A-Za-z' ]{1,40} )?\[Errno \d+\] .*"), False),
    (re.compile(r"invalid [\w`'\" -]{1,60}\b(?:parameter|argument|input|request)s?\b[`'\"]?[:.].*", re.I), False),
    (_SHELL, False),
    (re.compile(r"<(?:tool_use_)?error>.*", re.I), False),
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception)): (.*)")
_TAGS = re.compile(r"</?(?:tool_use_)?error>", re.I)


def tool_error(message: dict[str, Any], content: str) -> str | StepError | None:
    """The error in a tool's message, by the rules above, with its kind where the text names one; None for an answer.

    :param content: the message's content as text.
    """
    said = _by_fields(message)
    if said is not None:
        return _error(message.get("error"), content) if said else None
    start = content.lstrip()
    if start.startswith("{") and len(content) <= _JSON:
        try:
            value = decode(content.encode()).value
        except BadJson:
            pass
        else:
            return _in_json(value, content) if isinstance(value, dict) else None
    return _in_text(start)


def _by_fields(message: dict[str, Any]) -> bool | None:
    for key in ("is_error", "isError", "error"):
        value = message.get(key)
        if isinstance(value, bool):
            return value
    if _holds(message.get("error")):
        return True
    return {"error": True, "success": False}.get(string(message.get("status")))


def _holds(error: object) -> bool:
    """Whether the value of an ``error`` field is an error: numbers may be codes or measurements."""
    if isinstance(error, str):
        return not _NOTHING.fullmatch(error.strip())
    return error is True or (isinstance(error, dict | list) and bool(error))


def _in_json(value: dict[str, Any], content: str) -> str | StepError | None:
    flag = value.get("isError", value.get("is_error"))
    if isinstance(flag, bool):
        return _error(value.get("error"), text(value.get("content")) or content) if flag else None
    for key in ("error", "errors"):
        if _holds(value.get(key)):
            return _error(value[key], _why(value) or content)
    if string(value.get("status")).casefold() == "error" or any(value.get(key) is False for key in ("ok", "success")):
        why = _why(value)
        return _cut(why) if why else None
    return None


def _why(value: dict[str, Any]) -> str:
    return next((value[key] for key in _WHY if isinstance(value.get(key), str) and value[key].strip()), "")


def _error(error: object, otherwise: str) -> str | StepError:
    """Word the value of an ``error`` field; where it is only a flag, the text beside it says what went wrong."""
    if isinstance(error, list):
        return _error(error[0] if error else None, otherwise)
    if isinstance(error, dict):
        kind = next((name for key in ("type", "kind", "code", "name") if (name := string(error.get(key)))), "")
        message = _why(error) or string(error.get("error")) or text(error)
        return StepError(kind=kind, message=_cut(message))
    if isinstance(error, str) and error.strip():
        return _in_text(error) or _cut(error)
    return _in_text(otherwise) or _cut(otherwise) or "error"


def _in_text(content: str) -> str | StepError | None:
    start = content.lstrip()
    line, _, rest = start.partition("\n")
    line = line[:_LINE].rstrip()
    if line.startswith("Traceback (most recent call last)"):
        return _raised(rest)
    if exception := _EXCEPTION.fullmatch(line):
        kind, words = exception.groups()
        return None if _says_nothing(words) else StepError(kind=kind, message=_cut(words))
    for pattern, must_say in _STARTS:
        found = pattern.fullmatch(line)
        if found is None:
            continue
        if not must_say:
            return _cut(_TAGS.sub("", start)) or None
        words = found[1].strip() or rest.lstrip().partition("\n")[0]
        if _says_nothing(words):
            return None
        return _cut(words if pattern is _STARTS[0][0] else line)
    return None


def _raised(traceback: str) -> str | StepError:
    """What a traceback ends with: the last exception named right below indented lines."""
    raised, below, last = None, False, "Traceback"
    for line in traceback.splitlines():
        indented = line[:1].isspace()
        if below and not indented and line:
            last = line
            raised = _RAISED.fullmatch(line[:_LINE].rstrip()) or raised
        below = indented
    if raised is None:
        return _cut(last)
    return StepError(kind=raised[1], message=_cut(raised[2] or ""))


def _says_nothing(words: str) -> bool:
    return _NOTHING.fullmatch(words.strip()) is not None or not any(map(str.isalpha, words))


def _cut(words: str) -> str:
    return words.strip()[:MESSAGE]
