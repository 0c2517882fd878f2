"""What a person sees while services start: one line a step, with its seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Screen:
    """Steps on stderr, so that stdout has only the result."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Shown while it runs, and kept with a mark when it ends."""
        begun = time.monotonic()
        if not self.console.is_terminal:
            self.console.print(f"  - {label} ...")
        try:
            with self.console.status(label):
                yield
        except BaseException:
            self.console.print(f"  [red]✗[/] {label}")
            raise
        self.console.print(f"  [green]✓[/] {label} [dim]{time.monotonic() - begun:.1f} s[/]")

    def note(self, text: str) -> None:
        self.console.print(f"    [dim]{text}[/]")
