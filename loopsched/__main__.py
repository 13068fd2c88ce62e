"""Run the command line: ``python -m loopsched``."""

from __future__ import annotations

from loopsched.cli import main

if __name__ == "__main__":
    main()
