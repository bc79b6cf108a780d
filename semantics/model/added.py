"""The texts that users had added to the specification when a model was loaded: it stands for what they made of it."""

from __future__ import annotations

from sonnx.spec import project
from sonnx.spec.parsed import sha256

from ..errors import ModelError
from .graph import Model
from .path import quote


def texts_in_force() -> tuple[tuple[str, str], ...]:
    """The files that are added now, by name and digest. Raises AdditionError for one that cannot be read."""
    return tuple((name, sha256(text)) for name, text in project.texts().items())


def check_texts(model: Model) -> None:
    """Raises ModelError where a text that a model was loaded under is not in force any more: its operators would mean
    something else now, or nothing."""
    if not model.added:
        return
    now = texts_in_force()
    digests = {digest for _, digest in now}
    for name, digest in model.added:
        if digest not in digests:
            shown = ", ".join(f"{quote(other)} ({known[:12]})" for other, known in now) or "none"
            raise ModelError(
                f"the model was loaded under the text {quote(name)} ({digest[:12]}), which is not in force any more;"
                f" in force: {shown}. Load it again, with spec={quote(name)}"
            )
