"""``tracecomb run`` with a method whose reflections of some prompts do not end: ``CONFIG PROMPT...``."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial

from stream.commands import run
from stream.config import load
from stream.kafka.service import Service
from tests.kafka.stalling import Stalling

if __name__ == "__main__":
    vars(run)["Service"] = partial(Service, method=Stalling(set(sys.argv[2:])))
    sys.exit(run.run(Namespace(at=None, verbose=False), load(sys.argv[1])))
