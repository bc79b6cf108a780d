"""G as data, the facts that the text states its rules over, and the meanings of its expressions."""
