"""`sonnx dap`: the debugger for editors, by the Debug Adapter Protocol."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Listen on this port of 127.0.0.1 (0: any free one, which is printed) in place of standard input and output.",
)
@click.option(
    "--vscode",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the extension for VS Code into this folder and end.",
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Print the inputs of a model as JSON, for an editor that asks for them, and end.",
)
def dap(port: int | None, vscode: Path | None, inputs: Path | None) -> None:
    """Serve an editor that debugs models: its launch configuration names the model and the inputs.

    Without --port the protocol is spoken on standard input and output. With it clients are served one after the other
    until the command is interrupted; whoever may connect to ports of this machine may then read its files.

    \b
    Examples:
      sonnx dap --vscode extension
      sonnx dap --port 5678
    """
    from ..debugger.dap.server import claimed_output, on_port, on_stdio

    if vscode is not None:
        from ..debugger.extension import write_extension

        for path in write_extension(vscode):
            click.echo(path)
        return
    if inputs is not None:
        from ..debugger.extension import inputs_of

        click.echo(json.dumps(inputs_of(inputs), indent=2))
        return
    if port is None:
        on_stdio(claimed_output())
        return
    try:
        on_port(port, lambda number: click.echo(f"listening on 127.0.0.1:{number}"))
    except OSError as error:
        raise click.UsageError(f"127.0.0.1:{port} cannot be listened on: {error.strerror}") from None
