"""Engines: whatever executes a model, the machine, the fast path or somebody's runtime, behind one small protocol."""
