"""What each topic must be like, and what is wrong with those that there are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec.structs import asdict

from stream.kafka.tables import Topics

MAX_MESSAGE_BYTES = 8 << 20
"""The largest record batch that a topic of ours takes unless ``max_message_bytes`` says otherwise, which is what an
update or a state may come to."""

_SEGMENT_BYTES = 16 << 20


class Rule(NamedTuple):
    """A setting of a topic, the value that ``create`` gives it, and what ``check`` lets pass.

    :param passes: ``least`` and ``most`` compare numbers, ``policy`` compares sets.
    """

    setting: str
    value: str
    passes: Literal["equal", "least", "most", "policy"] = "equal"


class TopicFound(NamedTuple):
    """A topic as it is: how many partitions, and its settings with the brokers' defaults where it has none."""

    partitions: int
    settings: Mapping[str, str]


_LARGE = Rule("max.message.bytes", str(MAX_MESSAGE_BYTES), "least")
# The active segment is never compacted: small ones and a low ratio keep short what a reader of the latest must read.
_LATEST = (
    Rule("cleanup.policy", "compact", "policy"),
    Rule("segment.bytes", str(_SEGMENT_BYTES), "most"),
    Rule("min.cleanable.dirty.ratio", "0.1", "most"),
    _LARGE,
)
_FOR_EVER = (
    Rule("cleanup.policy", "delete", "policy"),
    Rule("retention.ms", "-1"),
    Rule("retention.bytes", "-1"),
    _LARGE,
)
# Keyed by prompt: compaction would drop traces, or rejects, that nobody has read.
_EVERY_ONE = Rule("cleanup.policy", "delete", "policy")

RULES: Mapping[str, tuple[Rule, ...]] = {
    "traces": (_EVERY_ONE, _LARGE),
    "updates": _LATEST,
    "deltas": _FOR_EVER,
    "state": _LATEST,
    # The brokers' time is when a trace was rejected; its own stands in a header.
    "rejects": (_EVERY_ONE, Rule("message.timestamp.type", "LogAppendTime"), _LARGE),
    "controls": _FOR_EVER,
}
"""By role. The topic of traces is its producers' own, so how large their messages may be is not checked."""

_NOT_CHECKED = {("traces", "max.message.bytes")}


def rules_for(role: str, largest: int = MAX_MESSAGE_BYTES) -> list[Rule]:
    """What a topic must be like.

    :param role: ``traces``, ``updates`` and so on, as in ``[topics]``.
    :param largest: bytes of the largest record that is written to it.
    """
    return [rule._replace(value=str(largest)) if rule is _LARGE else rule for rule in RULES[role]]


def settings_for(role: str, largest: int = MAX_MESSAGE_BYTES) -> dict[str, str]:
    """The settings that a topic is made with."""
    return {rule.setting: rule.value for rule in rules_for(role, largest)}


def faults(
    topics: Topics,
    found: Mapping[str, TopicFound],
    bootstrap: str,
    partitions: int | None = None,
    largest: int = MAX_MESSAGE_BYTES,
) -> list[str]:
    """Say what is wrong with the topics, each with how to mend it; nothing when all is well.

    :param found: the topics that there are, by name.
    :param bootstrap: the cluster, for the commands that mend it.
    :param partitions: how many each must have; as many as the topic of traces when None.
    :param largest: bytes of the largest record that is written.
    """
    names: dict[str, str] = asdict(topics)
    wrong = []
    if partitions is None and topics.traces in found:
        partitions = found[topics.traces].partitions
    for role, name in names.items():
        topic = found.get(name)
        if topic is None:
            wrong.append(f"{name} does not exist; `tracecomb topics create` makes it, another name goes under [topics]")
            continue
        if partitions is not None and topic.partitions != partitions:
            wrong.append(_partitions(name, topic.partitions, partitions, bootstrap))
        for rule in rules_for(role, largest):
            value = topic.settings.get(rule.setting, "")
            if (role, rule.setting) not in _NOT_CHECKED and not _passes(rule, value):
                wrong.append(_setting(name, rule, value, bootstrap))
    return wrong


def _passes(rule: Rule, value: str) -> bool:
    if rule.passes == "policy":
        return set(value.replace(" ", "").split(",")) == {rule.value}
    if rule.passes == "equal":
        return value == rule.value
    try:
        number = float(value)
    except ValueError:
        return False
    return number >= float(rule.value) if rule.passes == "least" else number <= float(rule.value)


def _setting(name: str, rule: Rule, value: str, bootstrap: str) -> str:
    least_or_most = {"least": "at least ", "most": "at most "}.get(rule.passes, "")
    return (
        f"{name} has {rule.setting} {value or '(none)'} and needs {least_or_most}{rule.value}; mend it with "
        f"kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics --entity-name {name} "
        f"--add-config {rule.setting}={rule.value}"
    )


def _partitions(name: str, has: int, needs: int, bootstrap: str) -> str:
    told = f"{name} has {has} partitions and needs {needs}, as all topics of the service"
    if has < needs:
        return (
            f"{told}; if nothing was learned with these topics yet, mend it with kafka-topics.sh --bootstrap-server "
            f"{bootstrap} --alter --topic {name} --partitions {needs}, else give new topics and a new group in the "
            "configuration"
        )
    return f"{told}; partitions cannot be taken away: name new topics and a new group in the configuration"
