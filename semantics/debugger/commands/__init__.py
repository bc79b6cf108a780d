"""The commands of the debugger, a file for each subject, in one table, and how a line is completed.

`table.execute` takes a line and a session and gives an answer and a session. A command must not print, nor know which
face asks: the terminal, batch mode or an editor.
"""
