"""What a playbook costs an agent, estimated without a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable

from operators.values import Bullet

BYTES_A_TOKEN = 4
_MARKUP = 16  # what `[err-00001] ` and the line break add to a bullet's own text


def tokens(bullets: Iterable[Bullet]) -> int:
    """The tokens that ``bullets`` take in a prompt, estimated from their bytes."""
    return sum(cost(bullet) for bullet in bullets)


def cost(bullet: Bullet) -> int:
    """The tokens of one bullet, rounded up."""
    return -(-(len(bullet.content.encode()) + _MARKUP) // BYTES_A_TOKEN)
