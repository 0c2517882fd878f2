"""Open WebUI started as docs/clients/programs.md says, asked as its own page asks."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from gateway.local.ports import free_port
from tests.conformance.clients.counting import Counted
from tests.conformance.clients.pages import snippets
from tests.conformance.clients.programs import python_of
from tests.conformance.clients.test_libraries import TEXT
from tests.journeys.conftest import MODEL
from tests.support.gateway import Customer, Town, wait_for

pytestmark = pytest.mark.clients
# It imports a great deal: 20 s on two idle cores.
START_SECONDS = 100
USER = {"name": "Ada", "email": "ada@example.com", "password": "a long Passw0rd"}
BACKGROUND = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}


@pytest.fixture
def counts(installation: Town, counted: Callable[[Customer], Counted]) -> Counted:
    return counted(installation.key())


@pytest.fixture
def open_webui(counts: Counted, tmp_path: Path) -> Iterator[httpx2.Client]:
    """Its first user, who is its admin."""
    port = free_port()
    (snippet,) = snippets("clients/programs.md", "Open WebUI")
    text = snippet.told(counts.gateway.url, counts.customer.token).replace("3000", str(port))
    commands = text.replace("open-webui serve", "exec open-webui serve")  # so that the signal to stop is its own
    environment = {
        "PATH": f"{python_of('open-webui').parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path),
        "DATA_DIR": str(tmp_path), "WEBUI_SECRET_KEY": "for a test", "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",
    }  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(["sh", "-ec", commands], env=environment, stdout=log, stderr=log, cwd=tmp_path)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            wait_for(lambda: process.poll() is not None or _is_up(client), START_SECONDS)
            assert process.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
            token = client.post("/api/v1/auths/signup", json=USER).raise_for_status().json()["token"]
            client.headers["authorization"] = f"Bearer {token}"
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


@pytest.mark.timeout(180)
def test_open_webui_lists_models_answers_and_asks_for_three_things_more(open_webui: httpx2.Client, counts: Counted) -> None:
    assert MODEL in {model["id"] for model in open_webui.get("/api/models").json()["data"]}
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "Tell me a joke."}], "stream": True}
    answer = open_webui.post("/api/chat/completions", json=asked)
    assert answer.text.count('"content":"tok "') == 3
    assert counts.arrivals() == 1

    chat = open_webui.post("/api/v1/chats/new", json={"chat": _empty_chat()}).raise_for_status().json()["id"]
    page = {"chat_id": chat, "id": "answer", "parent_id": "prompt", "session_id": "page", "background_tasks": BACKGROUND}
    open_webui.post("/api/chat/completions", json={**asked, **page}).raise_for_status()
    wait_for(lambda: len(counts.verdicts()) == 5, 20)
    assert counts.verdicts() == ["posted"] * 5
    assert counts.arrivals() == 5
    assert open_webui.get(f"/api/v1/chats/{chat}").json()["chat"]["history"]["messages"]["answer"]["content"].strip() == TEXT


def _empty_chat() -> dict[str, object]:
    prompt = {"id": "prompt", "parentId": None, "childrenIds": ["answer"], "role": "user", "content": "Tell me a joke."}
    answer = {"id": "answer", "parentId": "prompt", "childrenIds": [], "role": "assistant", "content": "", "model": MODEL}
    history = {"messages": {"prompt": prompt, "answer": answer}, "currentId": "answer"}
    return {"title": "New Chat", "models": [MODEL], "history": history, "messages": []}


def _is_up(client: httpx2.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx2.HTTPError:
        return False
