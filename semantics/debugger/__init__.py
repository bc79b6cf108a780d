"""The debugger: a history of immutable states, a listing, one table of commands, and queries; faces only render.

A face (the terminal, batch mode, an editor's protocol) gives lines to `commands.table.execute` and gets data back.
No command prints.
"""
