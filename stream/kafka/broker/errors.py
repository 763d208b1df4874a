"""What can be wrong with a broker of our own.

BrokerError
├── Missing         Java, Maven or the jars are not to be had on this machine
└── NotStarted      the broker ended, or did not answer, before it was ready
"""

from __future__ import annotations


class BrokerError(Exception):
    """A broker of our own cannot be run; the message says why and what to do."""


class Missing(BrokerError):
    """Something that the broker is made of is not on this machine."""


class NotStarted(BrokerError):
    """The broker was started and never got ready; the message ends with the last lines of its log."""
