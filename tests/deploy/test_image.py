"""deploy/Dockerfile copies what there is, pins what it takes, and starts what our command line knows."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.local.llamacpp import model_file
from gateway.local.ports import free_port
from tests.deploy.compose import compose, service
from tests.support.services import running_valkey
from tests.tidy.source import PACKAGES, ROOT

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
STAGES = {match[2]: match[1] for match in re.finditer(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)}


def test_every_build_target_is_a_stage() -> None:
    targets = {found["build"]["target"] for found in compose()["services"].values() if "build" in found}
    assert targets == {"program", "llamacpp", "vllm"}
    assert targets <= set(STAGES)


def test_every_base_image_is_pinned() -> None:
    for image in STAGES.values():
        assert image in STAGES or re.search(r":v?\d+\.\d+", image), image


def test_what_is_copied_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = [part for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for part in line.split()[:-1]]
    for source in sources:
        assert (ROOT / source).exists(), source
        assert Path(source).parts[0] in allowed, source
    assert set(PACKAGES) <= set(sources)


def test_it_runs_as_the_user_that_compose_names() -> None:
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert set(users) == {service("gateway")["user"]}


def test_its_ports_are_those_of_compose() -> None:
    environment = service("gateway")["environment"]
    assert f"EXPOSE {environment['FAREGATE_PORT']} {environment['FAREGATE_OPS_PORT']}" in DOCKERFILE


def test_its_entry_points_parse() -> None:
    for line in re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE):
        command = [sys.executable, *json.loads(line)[1:], "--help"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_secrets_are_made_once_and_fit_each_other(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    script = tmp_path / "deploy" / "make-secrets.sh"
    script.write_text((ROOT / "deploy" / "make-secrets.sh").read_text())
    subprocess.run(["sh", script], check=True, capture_output=True)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made
    assert set(made) == set(compose()["secrets"])
    assert made["postgres_password"] in made["database_url"]
    assert made["valkey_settings"].split()[1] in made["redis_url"]
    assert len(made["key_pepper"]) >= 32
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


def test_the_health_check_tells_alive_from_gone() -> None:
    check = [sys.executable, "-m", "gateway.alive"]
    assert service("gateway")["healthcheck"]["test"][1:4] == ["python", "-m", "gateway.alive"]
    done = subprocess.run([*check, f"http://127.0.0.1:{free_port()}/readyz"], cwd=ROOT, check=False, env=os.environ)
    assert done.returncode == 1


def test_the_settings_that_compose_gives_valkey_are_ours() -> None:
    command = service("valkey")["command"]
    flags = dict(zip(command[2::2], command[3::2], strict=True))
    with running_valkey() as server:
        written = dict(line.split(" ", 1) for line in server.valkey.folder.joinpath("valkey.conf").read_text().splitlines())
    for flag in ("--appendonly", "--appendfsync", "--maxmemory-policy"):
        assert flags[flag] == written[flag.removeprefix("--")]
    assert flags["--save"] == shlex.split(written["save"])[0]


def test_the_model_is_in_its_wheel() -> None:
    assert model_file().stat().st_size > 50_000_000


@pytest.mark.parametrize("path", ["docker-compose.yml", "deploy/Dockerfile", "deploy/fleet.gpu.toml", "deploy/fleet.cpu.toml"])
def test_a_file_for_operators_begins_with_what_it_is(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8").startswith("#")
