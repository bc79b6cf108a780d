"""The commands of the debugger: one table, by subject, and how a line is completed.

`table.execute` takes a line and a session and gives an answer and a session. No command prints.
"""
