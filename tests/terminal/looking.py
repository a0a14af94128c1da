"""The terminal view without a terminal: presses keys, reads the screen."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from leadline.terminal.app import ViewApp
from leadline.terminal.table_page import TablePage
from leadline.terminal.tree_table import TreeTable


@dataclass
class Seen:
    """What stood on the screen after the keys."""

    lines: list[str]
    page: str
    table: str
    chosen: str
    """Label of the frame under the cursor of the tree."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, part: str) -> str:
        """The first line with that text."""
        return next(line for line in self.lines if part in line)


def screen(app: ViewApp) -> list[str]:
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def look(profile, *keys: str, size: tuple[int, int] = (120, 40), typed: str = "") -> Seen:
    """What is seen after the last of the keys. `typed` is written where the key "TYPE" stands."""
    return looks(profile, *keys, size=size, typed=typed)[-1]


def looks(profile, *keys: str, size: tuple[int, int] = (120, 40), typed: str = "") -> list[Seen]:
    """What is seen at first and after each of the keys, pressed one after the other."""

    async def use() -> list[Seen]:
        app = ViewApp(profile, "run.leadline")
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            seen = [_seen(app)]
            for key in keys:
                if key == "TYPE":
                    await pilot.press(*(_NAMES.get(letter, letter) for letter in typed), "enter")
                else:
                    await pilot.press(key)
                await pilot.pause()
                seen.append(_seen(app))
            return seen

    return asyncio.run(use())


def _seen(app: ViewApp) -> Seen:
    below = app.screen_stack[0]
    tree = below.query_one(TreeTable)
    chosen = tree.view.label(tree.chosen) if tree.view and tree.chosen else ""
    return Seen(screen(app), app.page, below.query_one(TablePage).shown, chosen)


_NAMES = {":": "colon", ".": "full_stop", "/": "slash", " ": "space", "_": "underscore", "(": "left_parenthesis"}
