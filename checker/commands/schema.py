"""`sonnx schema`: the JSON schema of reports."""

from __future__ import annotations

import rich_click as click


@click.command()
def schema() -> None:
    """Print the JSON schema of the reports of `sonnx certify --format json`, which name it as `$schema`.

    Of several models each line is an object whose `report` it describes.

    \b
    Examples:
      sonnx schema
      sonnx schema > report.schema.json
    """
    from ..certification.formats.json_report import schema_text

    click.echo(schema_text(), nl=False)
