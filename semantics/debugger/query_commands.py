"""Queries."""
from .command import Command
COMMANDS: tuple[Command, ...] = ()
