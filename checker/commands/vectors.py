"""`sonnx vectors`: test vectors from the definitions, laid out as ONNX's backend tests."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import rich_click as click
from sonnx.spec.terminal import progress_bar


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--filter", "pattern", metavar="GLOB", help="Only vectors whose name fits, such as 'Conv-*'.")
def vectors(folder: Path, pattern: str | None) -> None:
    """Write test vectors into FOLDER: for every operator and version, at the edges of what is required of it.

    Each is a folder with model.onnx and test_data_set_0, as ONNX's backend tests are laid out; the outputs are those
    of the machine, and a runtime may differ from them within what the specification allows. What breaks a requirement
    has no outputs, so that it is not written; `sonnx conform --suite vectors` has it too.

    \b
    Examples:
      sonnx vectors vectors
      sonnx vectors vectors --filter 'Conv-11/*'
    """
    from ..runtimes.conformance.vectors import names, vector, write

    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{str(folder)!r} is a file: name a folder")
    chosen = [name for name in names() if pattern is None or fnmatch(name, pattern)]
    if not chosen:
        raise click.UsageError("no vector fits: look at --filter")
    written = 0
    with progress_bar(counted=True) as bar:
        for done, name in enumerate(chosen):
            case = vector(name)
            if case is not None and case.expected is not None:
                write(case, folder)
                written += 1
            bar(name, done + 1, len(chosen))
    click.echo(f"{written} vectors in {folder}")
