"""Six states of the page in light and dark look as they did: small pictures, held against those in `pictures/`.

`LEADLINE_PICTURES=write` makes them anew; look at what has changed before committing them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leadline.profiles import open_profile
from leadline.report import ReportOptions, build_report
from leadline.report.html import findings_of, render_html

FILE = Path(__file__).parents[1] / "compat" / "v1-torch.leadline"
PICTURES = Path(__file__).parent / "pictures"
MEAN, APART = 5.0, 0.04
"""Of 255, and of all pixels: other fonts stay below, a card that is gone or a colour that is another does not."""


@pytest.fixture(scope="module")
def compared(tmp_path_factory, browse):
    profile = open_profile(FILE)
    options = ReportOptions(top=200, frames=False, verdict=True, whole_tables=True)
    page = tmp_path_factory.mktemp("pictures") / "page.html"
    page.write_text(render_html(profile, build_report(profile, options, FILE.name), findings_of(profile)))
    write = ["write"] if os.environ.get("LEADLINE_PICTURES") == "write" else []
    PICTURES.mkdir(exist_ok=True)
    return browse("pictures.mjs", page, PICTURES, *write)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_looks_as_it_did(compared, scheme):
    shown = {name: found for name, found in compared.items() if name.endswith(scheme)}
    assert len(shown) == 6
    wrong = {name: found for name, found in shown.items() if found["mean"] > MEAN or found["apart"] > APART}
    assert wrong == {}
