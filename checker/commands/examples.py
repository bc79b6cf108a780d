"""`sonnx examples`: write the example models."""

from __future__ import annotations

from pathlib import Path

import rich_click as click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def examples(folder: Path) -> None:
    """Write the example models into FOLDER: some that conform, and one for each rule broken.

    \b
    Examples:
      sonnx examples examples
      sonnx examples /tmp/models
    """
    from ..certification.examples import examples as listed
    from ..certification.examples import write

    write(folder)
    width = max(len(example.name) for example in listed())
    for example in listed():
        breaks = f"breaks {example.breaks[0]} {example.breaks[1]}" if example.breaks else "conforms"
        click.echo(f"{folder / example.name}.onnx{' ' * (width - len(example.name))}  {breaks}: {example.about}")
