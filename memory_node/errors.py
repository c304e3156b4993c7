"""Every error this package raises on purpose, as one small tree."""

from __future__ import annotations


class MemoryNodeError(Exception):
    """Base of all errors of this package."""


class InvalidArgument(MemoryNodeError, ValueError):
    """An argument was wrong. The message begins with the argument's name.

    Attributes:
        argument: name of the argument, as the caller wrote it.
    """

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{argument}: {reason}")
        self.argument = argument


def shown(value: object) -> str:
    """Return a value as a message shows it: short, and never an error itself."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of thousands of digits, or lists in lists without end
        return f"a {type(value).__name__} too long to be shown"
    return text if len(text) <= 60 else text[:57] + "..."


class ClosedError(MemoryNodeError):
    """The memory was used after it was closed."""


class StorageError(MemoryNodeError):
    """SQLite could not do what was asked."""


class ConstraintError(StorageError):
    """What was to be written breaks a rule of the schema; the rest of its batch can be written without it."""


class CorruptDatabaseError(StorageError):
    """SQLite refuses the file; it was set aside under another name, which the message gives."""


class LockedError(StorageError):
    """Another process owns the database for writing."""


class ReadOnlyError(StorageError):
    """A write was asked of a memory that was opened read-only."""


class EmbedderError(MemoryNodeError):
    """The embedder failed or is not ready; words, place and time still answer."""


class SummarizerError(MemoryNodeError):
    """The language model gave nothing usable; the extractive summary stands."""


class SummarizerUnreachable(SummarizerError):
    """The language model did not answer at all, so that asking it for something else is in vain for now."""
