"""Playbook files: reading and writing one format a module, found by name or by content."""

from stream.formats.imported import FormatError, Imported, Refused
from stream.formats.registry import FORMATS, detect, read, write

__all__ = ["FORMATS", "FormatError", "Imported", "Refused", "detect", "read", "write"]
