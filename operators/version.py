"""Making versions: caps, apply, display ids, and the update that agents get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace
from rpds import HashTrieMap

from operators.caps import evicted, support
from operators.combine import apply, joined
from operators.entry import Entry
from operators.facts import EMPTY, Delta, merge
from operators.fold import fold
from operators.identity import section_slug
from operators.learn import Learning
from operators.playbook import Playbook, Record
from operators.settings import Settings
from operators.settle import settle
from operators.snapshot import dump, load, with_ids
from operators.state import PromptState, Quarantined, Standing, Step, stand
from operators.text import display_number, order, render
from operators.values import Bullet, Learned, Update, VersionKind
from operators.view import recounted, removal, shown

SNAPSHOT_EVERY = 50


class Taught(Struct, frozen=True):
    """What the version of a window was made of, for whoever has to make a smaller one of it.

    :param state: the state before.
    :param others: what else :func:`publish_window` was given.
    """

    state: PromptState
    window: int
    learning: Learning
    base: Standing
    settings: Settings
    others: dict[str, Any]


class Published(Struct, frozen=True):
    """One new version: the state it leaves, the update for agents, the entry for the log.

    :param taught: None where no window made it.
    """

    state: PromptState
    update: Update
    entry: Entry
    taught: Taught | None = None


def publish_window(
    state: PromptState,
    window: int,
    learning: Learning,
    base: Standing,
    settings: Settings,
    *,
    traces: Sequence[tuple[str, str]] = (),
    rejected: Sequence[tuple[str, str]] = (),
    at: str | None = None,
    lineage: str = "",
    stats: Mapping[str, Any] | None = None,
    accept: Callable[[Delta], bool] | None = None,
    refused: str = "",
) -> Published:
    """Make the version of a window, whatever it taught.

    :param traces: (id, content digest) of all its traces.
    :param accept: a guard; what it refuses is split along the scan's tree, and quarantined where it fails alone.
    :param refused: why nothing is learned from its traces.
    """
    delta = learning.extra
    quarantined: tuple[Quarantined, ...] = ()
    if learning.tree is not None:
        merged: Delta | None = learning.tree.value
        if accept is not None:
            settled = settle(learning.tree, accept, merge)
            merged = settled.accepted
            quarantined = tuple(Quarantined(window, leaf.value, "refused") for leaf in settled.refused)
        delta = merge(delta, merged or EMPTY)
    delta, pending = support(delta, state.pending, state.now.playbook, settings)
    carried = learning.carried
    if not learning.is_last:
        carried = (*(each for each in state.carried if each.due != window), *carried)
    others = {"traces": traces, "rejected": rejected, "at": at, "lineage": lineage, "stats": stats, "accept": accept}
    return _publish(
        replace(state, carried=carried, pending=pending, at=at or state.at),
        delta,
        settings,
        kind="window",
        window=window,
        base=base.version,
        traces=tuple(traces),
        rejected=tuple(rejected),
        quarantined=quarantined,
        lineage=lineage,
        audit=learning.audit,
        stats={"calls": learning.calls, **(stats or {})},
        refused=refused,
        taught=Taught(state, window, learning, base, settings, others),
    )


def publish_delta(
    state: PromptState,
    delta: Delta,
    settings: Settings,
    *,
    kind: VersionKind,
    ids: Mapping[str, str] | None = None,
    traces: Sequence[tuple[str, str]] = (),
    at: str | None = None,
    lineage: str = "",
    audit: Mapping[str, Any] | None = None,
) -> Published:
    """Make a version of an import or of a person's facts.

    :param ids: display ids to keep where they are free, by identity.
    """
    return _publish(
        replace(state, at=at or state.at),
        delta,
        settings,
        kind=kind,
        window=state.now.window,
        base=state.now.version,
        wanted=ids or {},
        traces=tuple(traces),
        lineage=lineage,
        audit=dict(audit or {}),
    )


def publish_rollback(
    state: PromptState, to: PromptState, settings: Settings, *, at: str | None = None, lineage: str = ""
) -> Published:
    """Make a version of the learner's facts of an older one; people's facts and all counters stay as they are now."""
    now, then = state.now.playbook, to.now.playbook
    records = {bullet: replace(record, person=None) for bullet, record in then.records.items()}
    for bullet, record in now.records.items():
        if record.person is not None:
            old = records.get(bullet) or Record(text=record.text)
            records[bullet] = replace(old, person=record.person)
    ids = {**dict(then.ids.items()), **dict(now.ids.items())}
    playbook = Playbook(HashTrieMap(records), then.evidence, then.votes, then.tallies, HashTrieMap(ids))
    rolled = replace(
        state,
        now=Standing(state.now.version, state.now.window, playbook, tuple(order(shown(playbook).values()))),
        older=(),
        pending=to.pending,
        at=at or state.at,
    )
    return _publish(
        rolled,
        EMPTY,
        settings,
        kind="rollback",
        window=state.now.window,
        base=to.now.version,
        before=state.now.bullets,
        lineage=lineage,
        audit={"to": to.now.version},
    )


def _publish(
    state: PromptState,
    delta: Delta,
    settings: Settings,
    *,
    kind: VersionKind,
    window: int,
    base: int,
    wanted: Mapping[str, str] | None = None,
    traces: tuple[tuple[str, str], ...] = (),
    rejected: tuple[tuple[str, str], ...] = (),
    quarantined: tuple[Quarantined, ...] = (),
    before: Sequence[Bullet] | None = None,
    lineage: str = "",
    audit: Mapping[str, Any] | None = None,
    stats: Mapping[str, Any] | None = None,
    refused: str = "",
    taught: Taught | None = None,
) -> Published:
    version = state.now.version + 1
    before = state.now.bullets if before is None else before
    playbook, touched = joined(state.now.playbook, delta)
    bullets = None if kind == "rollback" else recounted(before, state.now.playbook, playbook, touched)
    ids: tuple[tuple[str, str], ...] = ()
    counter, text = state.counter, state.now.text
    only_counts = bullets is not None
    if bullets is None:
        live = shown(playbook)
        out = evicted(live, settings.token_budget, {bullet.bullet for bullet in before})
        if out:
            eviction = removal(playbook, out, state.now.window)
            delta = merge(delta, eviction)
            playbook = apply(playbook, eviction)
            live = shown(playbook)
            audit = {**(audit or {}), "evicted": [state.now.playbook.ids.get(bullet) or bullet for bullet in out]}
        ids, counter = _number(playbook, live, counter, wanted or {})
        playbook = with_ids(playbook, ids)
        new = dict(ids)
        bullets = tuple(order(replace(b, id=new[b.bullet]) if b.bullet in new else b for b in live.values()))
        text = None
    changed = (settings.counters or not only_counts) and _visible(bullets, settings) != _visible(before, settings)
    if text is None or changed:
        text = render(bullets, counters=settings.counters)
    folds = kind == "window" and window % settings.fold_every == 0 and window > settings.max_staleness
    step: Step | None = Step(delta, ids)
    if kind == "rollback":
        step = None
    elif folds:
        anchor = stand(state, Standing(window=window), settings.max_staleness)[0].playbook
        owing = {each.given.trace for each in state.carried}
        oldest = window - settings.max_staleness
        folded = fold(playbook, anchor, oldest, after=settings.fold_after, carried=owing)
        if folded is not playbook:
            playbook, step = folded, None
    now = Standing(version, window, playbook, bullets, step, text)
    older = () if kind == "rollback" else stand(state, now, settings.max_staleness)
    after = replace(state, now=now, older=older, counter=counter, quarantined=state.quarantined + quarantined)
    update = Update(
        prompt=state.prompt,
        version=version,
        base=base,
        kind=kind,
        changed=changed,
        text=text,
        bullets=bullets,
        lineage=lineage,
        at=UNSET if after.at is None else after.at,
        learned=Learned(len(traces) - len(rejected) if kind == "window" and not refused else 0),
        stats={} if stats is None else dict(stats),
    )
    snapshot = dump(after) if version % SNAPSHOT_EVERY == 0 or kind == "rollback" else None
    entry = Entry(
        prompt=state.prompt,
        version=version,
        base=base,
        kind=kind,
        changed=changed,
        window=window,
        at=after.at,
        batch_size=len(traces) if kind == "window" else 0,
        traces=traces,
        rejected=rejected,
        refused=refused,
        delta=delta,
        ids=ids,
        carried=after.carried,
        pending=after.pending,
        quarantined=quarantined,
        folded=folds,
        max_staleness=settings.max_staleness,
        fold_after=settings.fold_after,
        counters=settings.counters,
        audit=dict(audit or {}),
        snapshot=snapshot,
        stats=update.stats,
    )
    return Published(after, update, entry, taught)


def _visible(bullets: Sequence[Bullet], settings: Settings) -> list[tuple[object, ...]]:
    """What an agent can tell two versions apart by."""
    if settings.counters:
        return [(b.id, b.section, b.content, b.helpful, b.harmful) for b in bullets]
    return [(b.id, b.section, b.content) for b in bullets]


def _number(
    playbook: Playbook, live: Mapping[str, Bullet], counter: int, wanted: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], int]:
    """Display ids for the bullets that have none: those wanted where they are free, else the counter's next."""
    nameless = [bullet for bullet in live.values() if not bullet.id]
    if not nameless:
        return (), counter
    # Those that show alike go by identity: the map they come from is in no order that another process would repeat.
    nameless = order(sorted(nameless, key=lambda bullet: bullet.bullet))
    given: dict[str, str] = {}
    taken = set(playbook.ids.values()) if wanted else set()
    for bullet in nameless:
        want = wanted.get(bullet.bullet)
        if want and want not in taken:
            given[bullet.bullet] = want
            taken.add(want)
    counter = max([counter, *map(_digits, given.values())])
    for bullet in nameless:
        if bullet.bullet not in given:
            counter += 1
            given[bullet.bullet] = f"{section_slug(bullet.section)}-{counter:05d}"
    return tuple(sorted(given.items())), counter


def _digits(display: str) -> int:
    digits = display_number(display)[2]
    return int(digits) if digits else 0


def advance(state: PromptState, entry: Entry) -> PromptState:
    """The state after one more entry of the log: how any version is rebuilt."""
    if entry.snapshot is not None:
        return load(entry.snapshot)
    playbook = with_ids(apply(state.now.playbook, entry.delta), entry.ids)
    step: Step | None = Step(entry.delta, entry.ids)
    if entry.folded:
        anchor = stand(state, Standing(window=entry.window), entry.max_staleness)[0].playbook
        owing = {each.given.trace for each in entry.carried}
        oldest = entry.window - entry.max_staleness
        playbook = fold(playbook, anchor, oldest, after=entry.fold_after, carried=owing)
        step = None
    now = Standing(entry.version, entry.window, playbook, tuple(order(shown(playbook).values())), step)
    return PromptState(
        prompt=entry.prompt,
        now=now,
        older=stand(state, now, entry.max_staleness),
        counter=max([state.counter, *(_digits(display) for _, display in entry.ids)]),
        carried=entry.carried,
        pending=entry.pending,
        quarantined=state.quarantined + entry.quarantined,
        at=entry.at,
    )
