"""Names for an environment: tools, arguments and tables, drawn and spelt by seed."""

from __future__ import annotations

from random import Random

VERBS = (
    "issue",
    "lodge",
    "settle",
    "grant",
    "enrol",
    "dispatch",
    "register",
    "approve",
    "charter",
    "endorse",
    "bill",
    "schedule",
    "convey",
)
THINGS = (
    "refund",
    "visit",
    "parcel",
    "permit",
    "repair",
    "berth",
    "audit",
    "loan",
    "crate",
    "survey",
    "pickup",
    "lease",
    "escort",
    "voyage",
)
LOOKERS = ("locate", "search", "retrieve", "identify")
ISSUERS = ("quote", "reserve", "authorise", "estimate")
OPENERS = ("begin", "unlock", "activate", "prepare")
VIEWERS = ("inspect", "describe", "view", "report")
CASES = ("job", "dossier", "ticket", "folder", "docket")
NOTES = ("remark", "memo", "caption", "hint")

ARGUMENTS = {
    "minor units": ("fee", "tariff", "surcharge", "deposit", "payout"),
    "duration": ("stay_length", "shift_span", "rental_span", "idle_span"),
    "day": ("due_on", "valid_from", "pickup_day", "closing_day"),
    "clock": ("gate_time", "opens_at", "slot_start", "curfew"),
    "code": ("currency", "country", "site_code", "depot"),
    "padded": ("account", "ledger_no", "badge", "meter_no"),
    "choice": ("service_level", "handling", "priority_class", "cargo_kind"),
    "digits": ("phone", "hotline", "pager", "fax_line"),
    "filed name": ("signatory", "inspector", "carrier_contact", "witness"),
    "person": ("member", "client", "tenant", "supplier"),
    "token": ("voucher", "clearance", "permit_key", "release_mark"),
    "most": ("units", "pallets", "copies", "seat_count"),
}
"""Names of arguments by the kind of rule that stands behind them."""


class Names:
    """Deals names, each only once, all in the one spelling that the seed chose."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._taken: set[str] = set()
        self._spell = random.choice((_snake, _camel, _kebab))

    def deal(self, *pools: tuple[str, ...]) -> str:
        """A name of one word from each pool; every word is used once, so no name says what another one is for."""
        words = [self._random.choice([word for word in pool if word not in self._taken]) for pool in pools]
        self._taken.update(words)
        return self._spell("_".join(words))


def _snake(words: str) -> str:
    return words


def _camel(words: str) -> str:
    first, *rest = words.split("_")
    return first + "".join(map(str.capitalize, rest))


def _kebab(words: str) -> str:
    return words.replace("_", "-")
