"""The Debug Adapter Protocol: a face of the debugger for editors.

`server` takes connections, `worker` answers the requests of one, with its table `HANDLERS`. It holds no
debugging logic and must not know the terminal's face: what a request asks for is a command, a stop or an inspection of
the packages above it.

A handler (`adapter.Handler`) is a request's name, a function `(adapter, arguments) -> body or None`, and the
capabilities that `initialize` says because of it. A module has its handlers as the tuple `HANDLERS`; `worker` puts the
tuples together, and that table alone decides what is answered and which capabilities are said.

What a handler may do, on the worker's thread:

- take arguments by `arguments.text(...)`, `.whole(...)`, `.flag(...)`, `.parts(...)`: they refuse what does not fit;
- read `adapter.session` (refuses before the launch), or `adapter.looking(frame_id)`: the session looking at a frame;
- run a command line: `outcome = table.execute(adapter.session, line)`, then `adapter.become(outcome.session)`;
- refuse: raise Refused, ModelError, Unsupported or OSError; the response is then an error of one line;
- give references: `adapter.references.to(thing)` for a hashable thing, `.get(number, Class, "variable")` back; they die
  in `adapter.become` where the position or timeline is another one. A thing that has variables is a
  `variables.Container`;
- send events: `adapter.event(...)` now, before the response, `adapter.later(...)` after it;
- do what takes time, or moves, after the response: `adapter.after(action)`. Moves go through `stopping.move`; where a
  command has moved already, `stopping.stopped(adapter, outcome)` within `after` sends `stopped`;
- give lines and columns as the client counts: `adapter.client.line(number)`, `.column(...)`, back by `.own_line(...)`;
- escape texts of unknown origin: `inert.one_line(text)`.

Stops that a command sets or removes are told to the client by the worker itself (`stopping.announce_stops`).
"""
