"""Debian's Chromium, looked through by Playwright, at an installation of the module's own."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.console.conftest import Person as Person
from tests.console.conftest import house as house
from tests.console.conftest import person as person
from tests.console.conftest import standing_engine as standing_engine

SHOTS = Path(__file__).resolve().parents[2] / ".screenshots"
WIDTHS = (390, 820, 1440)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "there is no chromium: `make test-browser` installs it where it may"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """What it logs as an error, and what it throws, fails the test."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB", timezone_id="Europe/Berlin")
    opened, wrong = context.new_page(), list[str]()
    # A form that is refused is a page of status 422, which Chromium logs.
    opened.on("console", lambda line: wrong.append(line.text) if line.type == "error" and "422" not in line.text else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    assert wrong == []


@pytest.fixture
def shots(page: Page) -> Callable[[str], None]:
    """Pictures of the page as it stands, light and dark, narrow to wide; and that nothing sticks out at the side."""

    def take(name: str) -> None:
        SHOTS.mkdir(exist_ok=True)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=SHOTS / f"{name}-{scheme}-{width}.png", full_page=True)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})

    return take
