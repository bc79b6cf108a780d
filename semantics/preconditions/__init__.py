"""What the operators of a model require, before it runs: shapes and requirements computed from the operators' texts."""
