"""A browser without scripts: keeps cookies, sends forms as its pages have them, and says where they came from."""

import re
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import httpx2

_TOKEN = re.compile(r'name="token" value="([0-9a-f]*)"')


class Visitor:
    """`page` is the last answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx2.Client(base_url=url, follow_redirects=False, timeout=20)
        self.token = ""
        self.page: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.client.close()

    def get(self, path: str) -> Any:
        self.page = self.client.get(path)
        found = _TOKEN.search(self.page.text)
        self.token = found[1] if found else self.token
        return self.page

    def post(self, path: str, **fields: str) -> Any:
        """As the form of the page that was last looked at."""
        return self.post_as({"origin": self.url}, path, token=self.token, **fields)

    def post_as(self, headers: dict[str, str], path: str, **fields: str) -> Any:
        told = {"content-type": "application/x-www-form-urlencoded", **headers}
        self.page = self.client.post(path, content=urlencode(fields), headers=told)
        return self.page

    def sign_in(self, email: str, password: str) -> Any:
        answer = self.post_as({"origin": self.url}, "/sign-in", email=email, password=password)
        if answer.status_code == 303:
            self.get("/sessions")
        return answer
