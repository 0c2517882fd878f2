"""The reference as it is served: to anybody, from one host, without scripts."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import httpx2
import pytest

from gateway.reference.document import openapi
from tests.support.gateway import Town


class Links(HTMLParser):
    """Every id, every link, every tag of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            assert not name.startswith("on"), f"a script in {name}"
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src", "action") and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def page(vector_town: Town) -> httpx2.Response:
    return httpx2.get(f"{vector_town.gateway().url}/docs")


def test_the_document_is_served_as_it_is(vector_town: Town) -> None:
    answer = httpx2.get(f"{vector_town.gateway().url}/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == openapi()


def test_the_page_is_all_there_without_a_script_or_another_host(page: httpx2.Response) -> None:
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    found = Links(page.text)
    assert not found.tags & {"script", "iframe", "img", "link", "form", "object"}
    assert len(set(found.ids)) == len(found.ids)
    inside = {link.removeprefix("#") for link in found.links if link.startswith("#")}
    assert inside <= set(found.ids)
    assert {link for link in found.links if not link.startswith("#")} == {"/openapi.json", "/llms.txt", "/llms-full.txt"}


def test_the_page_may_show_itself_in_its_own_style_and_no_more(page: httpx2.Response) -> None:
    policy = page.headers["content-security-policy"]
    [style] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert 'style="' not in page.text
    assert "http://" not in style
    assert "url(" not in style


def test_the_page_has_every_path_and_every_field(page: httpx2.Response) -> None:
    document = openapi()
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in page.text
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in page.text
    for name, schema in document["components"]["schemas"].items():
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in page.text, f"{name}.{field}"


@pytest.mark.parametrize("path", ["/llms.txt", "/llms-full.txt"])
def test_assistants_find_every_path(vector_town: Town, path: str) -> None:
    answer = httpx2.get(vector_town.gateway().url + path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.text.startswith("# Faregate API\n\n> ")
    assert all(named in answer.text for named in openapi()["paths"])


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/llms.txt", "/llms-full.txt"])
def test_head_and_wrong_methods_are_answered_too(vector_town: Town, path: str) -> None:
    url = vector_town.gateway().url + path
    head, whole = httpx2.head(url), httpx2.get(url)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", whole.headers["content-length"])
    assert httpx2.post(url).status_code == 405
