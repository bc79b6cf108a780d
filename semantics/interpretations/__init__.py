"""The meanings of the specification language: one fold over `Expr` for each."""
