"""What all tests share: Hypothesis profiles, the samples in ``../shared``, and when a missing thing may skip a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# No test may pass or fail by how fast this machine is just now, hence no deadline.
for name, examples in {"few": 10, "dev": 50, "ci": 100, "laws": 1000}.items():
    settings.register_profile(
        name, max_examples=examples, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("TRACECOMB_HYPOTHESIS_PROFILE", "dev"))


def require(what: str, there: object) -> None:
    """Skip the test that runs unless ``what`` (a broker, a model, a browser) is ``there``.

    Under ``TRACECOMB_REQUIRE_ALL=1``, as in CI, it fails instead: what is never there would never be tested.
    """
    if there:
        return
    if os.environ.get("TRACECOMB_REQUIRE_ALL") == "1":
        pytest.fail(f"{what} is missing, and TRACECOMB_REQUIRE_ALL=1", pytrace=False)
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``shared`` beside the project, with samples of trace formats; only some checkouts have one."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared here")
    return folder
