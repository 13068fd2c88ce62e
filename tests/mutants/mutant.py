"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One formula broken on purpose.

    ``before`` occurs exactly once in ``file``; ``after`` takes its place.
    ``breaks`` says what is wrong then; ``tests`` are the test files, or single
    tests in them, that must fail.
    """

    name: str
    file: str
    before: str
    after: str
    breaks: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the formula broken."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: its snippet is {text.count(self.before)} times in file")
        return text.replace(self.before, self.after)

    @property
    def module(self) -> str:
        """What must still import; a script is no module."""
        if not self.file.endswith(".py"):
            return self.file.partition("/")[0]
        return self.file.removesuffix(".py").replace("/", ".")


class In:
    """The mutants of one file, and the test files that are about it."""

    def __init__(self, file: str, *tests: str) -> None:
        self.file, self.tests = f"loopsched/{file}", tests
        self.mutants: list[Mutant] = []

    def broken(self, name: str, breaks: str, before: str, after: str, *tests: str) -> None:
        """Add a mutant; other tests than the file's where given.

        ``::test_it`` is in the first of its test files, ``>>> function`` the example in the
        function's own documentation.
        """
        at = tuple(map(self._place, tests or self.tests))
        self.mutants.append(Mutant(name, self.file, before, after, breaks, at))

    def _place(self, test: str) -> str:
        if test.startswith(">>> "):
            module = self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            return f"{self.file}::{module}.{test.removeprefix('>>> ')}"
        return f"tests/{self.tests[0] if test.startswith('::') else ''}{test}"
