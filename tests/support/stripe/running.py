"""A stand-in Stripe as a process, and the controls by which a test steers it."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk_test_standin"


@dataclass(frozen=True, slots=True)
class StandInStripe:
    process: subprocess.Popen[str]
    url: str

    def steer(self, control: str, **given: Any) -> Any:
        """One of the controls that `tests/support/stripe/server.py` lists."""
        status, body, _ = self._ask("POST", f"/_{control}", json.dumps(given) if given else "", "application/json")
        assert status == 200, body
        return json.loads(body)

    def advance(self, *, days: float = 0, seconds: int = 0) -> int:
        """Moves its clock, and brings the post that is due by then; the new time."""
        now: int = self.steer("clock", by=int(days * 86400) + seconds)["now"]
        self.steer("flush")
        return now

    def journal(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.steer("journal")
        return found

    def browse(self, url: str, **fields: str) -> tuple[int, str, str]:
        """A hosted page, or the answer to its form: status, text, and where it sends the browser."""
        method = "POST" if fields else "GET"
        status, body, headers = self._ask(method, urlsplit(url).path, urlencode(fields), "application/x-www-form-urlencoded")
        return status, body, headers.get("location", "")

    def _ask(self, method: str, path: str, body: str, kind: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.url.rpartition(":")[2]), timeout=30)
        try:
            connection.request(method, path, body=body, headers={"content-type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()


@contextmanager
def running_stripe(*, now: int | None = None, seed: int = 0) -> Iterator[StandInStripe]:
    """Without `now` its clock runs with the machine's."""
    command = [sys.executable, "-m", "tests.support.stripe", "--seed", str(seed)]
    command += [] if now is None else ["--now", str(now)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    try:
        with process.stdout:
            line = process.stdout.readline()
        assert line.startswith("listening on "), f"the stand-in Stripe did not start: {line!r}"
        yield StandInStripe(process, line.removeprefix("listening on ").strip())
    finally:
        process.kill()
        process.wait()
