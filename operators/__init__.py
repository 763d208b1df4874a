"""Pure operators and values: from traces to prompt versions, without sockets, files, environment or clock."""

from operators.budget import tokens
from operators.calls import Calls, Failed
from operators.caps import evicted, support
from operators.cite import Checked, Refused, Status, check
from operators.combine import apply
from operators.controller import BatchSizes
from operators.entry import Entry
from operators.explanation import Explanation, SizesState
from operators.facts import EMPTY, Count, Delta, Evidence, FoldCover, PersonFact, Supersession, Text, Vote, merge
from operators.fit import PowerLaw, fit, plateau
from operators.fold import fold
from operators.identity import SECTIONS, identity, normalise, section_key, section_slug
from operators.imports import import_delta, import_source, proposed_ids, publish_import
from operators.lane import WindowLost
from operators.learn import Learning, enter_all, learn, votes_of
from operators.learner import Learner
from operators.method import Method
from operators.modelfree import ModelFree, union
from operators.overload import Load, Overload, observe
from operators.playbook import Playbook, Record
from operators.reflect import Reflector, Rejected
from operators.scan import Node, prefixes, scan, scan_as_completed
from operators.seen import seen
from operators.settings import Settings
from operators.settle import Settled, settle
from operators.shuffle import group_count, groups, place_carried, window_seed
from operators.sink import Sink
from operators.sizes import FixedSize, Sizes
from operators.snapshot import Snapshot, dump, load
from operators.state import Carried, PromptState, Quarantined, Standing, base_for
from operators.text import Parsed, order, parse_ace, render
from operators.values import (
    Bullet,
    Call,
    Curation,
    Drop,
    DropReason,
    Given,
    Insight,
    Learned,
    Operation,
    OperationType,
    Outcome,
    Reflection,
    Role,
    Step,
    StepError,
    Trace,
    Update,
    VersionKind,
)
from operators.version import Published, advance, publish_delta, publish_rollback, publish_window
from operators.view import chains, removal, roots, shown
from operators.window import Window, Windows
from operators.wire import encode

__all__ = (
    "EMPTY",
    "SECTIONS",
    "BatchSizes",
    "Bullet",
    "Call",
    "Calls",
    "Carried",
    "Checked",
    "Count",
    "Curation",
    "Delta",
    "Drop",
    "DropReason",
    "Entry",
    "Evidence",
    "Explanation",
    "Failed",
    "FixedSize",
    "FoldCover",
    "Given",
    "Insight",
    "Learned",
    "Learner",
    "Learning",
    "Load",
    "Method",
    "ModelFree",
    "Node",
    "Operation",
    "OperationType",
    "Outcome",
    "Overload",
    "Parsed",
    "PersonFact",
    "Playbook",
    "PowerLaw",
    "PromptState",
    "Published",
    "Quarantined",
    "Record",
    "Reflection",
    "Reflector",
    "Refused",
    "Rejected",
    "Role",
    "Settings",
    "Settled",
    "Sink",
    "Sizes",
    "SizesState",
    "Snapshot",
    "Standing",
    "Status",
    "Step",
    "StepError",
    "Supersession",
    "Text",
    "Trace",
    "Update",
    "VersionKind",
    "Vote",
    "Window",
    "WindowLost",
    "Windows",
    "advance",
    "apply",
    "base_for",
    "chains",
    "check",
    "dump",
    "encode",
    "enter_all",
    "evicted",
    "fit",
    "fold",
    "group_count",
    "groups",
    "identity",
    "import_delta",
    "import_source",
    "learn",
    "load",
    "merge",
    "normalise",
    "observe",
    "order",
    "parse_ace",
    "place_carried",
    "plateau",
    "prefixes",
    "proposed_ids",
    "publish_delta",
    "publish_import",
    "publish_rollback",
    "publish_window",
    "removal",
    "render",
    "roots",
    "scan",
    "scan_as_completed",
    "section_key",
    "section_slug",
    "seen",
    "settle",
    "shown",
    "support",
    "tokens",
    "union",
    "votes_of",
    "window_seed",
)
