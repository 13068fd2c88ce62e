"""The version, which results state."""

__version__ = "0.1.0"
