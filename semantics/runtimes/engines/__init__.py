"""Engines: whatever executes a model, the machine, the fast path or somebody's runtime, behind one small protocol.

`protocol.Engine` says what an engine does, `registry` finds those that are installed by their entry points, and
runtimes of others work in processes of their own (`remote`, `worker`). An engine must not know what is done with its
outputs: nothing here compares or judges.
"""
