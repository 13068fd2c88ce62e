"""Groups of commands, which lead from a wrong name to the nearest."""

from __future__ import annotations

import click

from loopsched.base.errors import nearest


class Group(click.Group):
    """A group whose complaint about an unknown command names those that there are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            ctx.fail(f"no command '{args[0]}'; {nearest(args[0], names)}")
        return super().resolve_command(ctx, args)
