"""Replaying a certificate on its model: a second opinion that shares no code with the certifier, and needs no solver.

What it reads it reads itself: the certificate (`form`), the model (`files`, `listing`, `reader`), the specification's
text (`text`). The facts of part 1 are its own (`tables`), and each rule is judged by evaluating its own formula over
them (`formulas`, `fixpoints`). `replay` compares with what the certificate states; of certificates about two models
`transforms` does the steps again. CERTIFICATE.md lists what is shared
with the rest of the package; of other packages it must know nothing but the ground.
"""

from .outcomes import Outcome, Recheck
from .replay import recheck

__all__ = ["Outcome", "Recheck", "recheck"]
