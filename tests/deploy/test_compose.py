"""docker-compose.yml is valid, private by default, and agrees with the settings, the command line and the engines."""

import json
import re

import jsonschema
import pytest
from typer.main import get_command

from backends.fleet import Fleet
from gateway.cli import app
from gateway.settings import Settings
from models.catalogue import Catalogue
from tests.deploy.compose import PROGRAM, compose, service
from tests.tidy.source import ROOT

SERVICES = sorted(compose()["services"])


def test_it_is_valid_by_the_compose_specification() -> None:
    """`compose-spec.json` is compose-spec/compose-spec's schema (Apache-2.0), of June 2026."""
    schema = json.loads((ROOT / "tests" / "deploy" / "compose-spec.json").read_text(encoding="utf-8"))
    plain = {key: value for key, value in compose().items() if not key.startswith("x-")}
    jsonschema.Draft7Validator(schema).validate(plain)


def test_only_the_gateway_publishes_a_port() -> None:
    assert [name for name in SERVICES if "ports" in service(name)] == ["gateway"]
    assert service("gateway")["ports"] == ["8080:8080"]


def test_servers_are_on_a_network_without_a_way_out_or_in() -> None:
    assert compose()["networks"]["private"]["internal"] is True
    for name in ("postgres", "valkey", "worker", "migrate", "llamacpp"):
        assert service(name)["networks"] == ["private"], name
    assert "public" not in service("vllm")["networks"]


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_runs_as_root_or_keeps_privileges(name: str) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service(name)["user"])
    assert service(name)["cap_drop"] == ["ALL"]
    assert service(name)["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned(name: str) -> None:
    tag = service(name)["image"].rsplit(":", 1)[1]
    assert re.match(r"v?\d+\.\d+", tag)
    assert "latest" not in tag


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in ("worker", "migrate")])
def test_whatever_listens_has_a_health_check(name: str) -> None:
    assert service(name)["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


def test_every_variable_is_a_setting_and_every_value_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in PROGRAM:
        environment = service(name)["environment"]
        known = {f"FAREGATE_{field.upper()}" for field in Settings.model_fields}
        known |= {"DATABASE_URL_FILE", "REDIS_URL_FILE", "FAREGATE_KEY_PEPPER_FILE"}
        assert set(environment) - known == set()
        for variable, value in environment.items():
            if not variable.endswith("_FILE") or variable == "FAREGATE_FLEET_FILE":
                monkeypatch.setenv(variable, value)
    monkeypatch.setenv("DATABASE_URL", "postgresql://x")
    monkeypatch.setenv("REDIS_URL", "redis://x")
    monkeypatch.setenv("FAREGATE_KEY_PEPPER", "x" * 32)
    settings = Settings.load()
    assert (settings.host, settings.port, settings.ops_port) == ("0.0.0.0", 8080, 8081)


def test_every_secret_that_is_read_is_given_and_defined() -> None:
    for name in SERVICES:
        given = set(service(name).get("secrets", []))
        read = set(re.findall(r"/run/secrets/(\w+)", json.dumps(service(name))))
        assert read == given, name
        assert given <= set(compose()["secrets"]), name


def test_no_secret_is_written_in_the_file() -> None:
    for name in SERVICES:
        for variable, value in service(name).get("environment", {}).items():
            if re.search(r"PASSWORD|PEPPER|TOKEN|_URL", variable):
                assert variable.endswith("_FILE"), variable
                assert str(value).startswith("/run/secrets/")


def test_the_command_lines_are_ours() -> None:
    commands = getattr(get_command(app), "commands", {})
    for name in PROGRAM:
        [command] = service(name)["command"]
        assert command in commands
    assert service("gateway")["command"] == ["serve"]


def test_answers_are_not_cut_by_a_stop() -> None:
    def seconds(text: str) -> int:
        return int(re.fullmatch(r"(\d+)s", text)[1])  # type: ignore[index]  # a mismatch fails the test

    drain = int(service("gateway")["environment"]["FAREGATE_DRAIN_SECONDS"])
    # The drain, then as long again to hand over what is not settled (gateway/app.py).
    assert seconds(service("gateway")["stop_grace_period"]) > 2 * drain
    assert seconds(service("vllm")["stop_grace_period"]) > 60


@pytest.mark.parametrize(("fleet", "engine"), [("fleet.gpu.toml", "vllm"), ("fleet.cpu.toml", "llamacpp")])
def test_the_fleet_files_name_the_services_and_models_of_the_catalogue(fleet: str, engine: str) -> None:
    [replica] = Fleet.load(ROOT / "deploy" / fleet).replicas
    assert (replica.host, replica.port) == (engine, 8000)
    assert Catalogue.load().resolve(replica.model).id == replica.model
    assert compose()["services"][engine]["profiles"]


def test_vllm_serves_what_its_fleet_file_says() -> None:
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in service("vllm")["command"] if "=" in flag)
    [replica] = Fleet.load(ROOT / "deploy" / "fleet.gpu.toml").replicas
    assert flags["served-model-name"] == replica.engine_model
    assert int(flags["max-num-seqs"]) == replica.slots
    assert int(flags["max-model-len"]) == replica.context
    assert int(flags["port"]) == replica.port
    assert (flags["quantization"], flags["kv-cache-dtype"], flags["scheduling-policy"]) == ("fp8", "fp8", "priority")
    for flag in ("--enable-prefix-caching", "--enable-auto-tool-choice"):
        assert flag in service("vllm")["command"]
    assert flags["tool-call-parser"] == "hermes"
