"""Readers of trace formats: one format a file, recognised by content."""

from stream.readers.reader import NotATrace, Placed, Reader, Reading, Rows
from stream.readers.registry import READERS, pick

__all__ = ["READERS", "NotATrace", "Placed", "Reader", "Reading", "Rows", "pick"]
