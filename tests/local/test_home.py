"""What a local run remembers, and that it keeps its secrets."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gateway.local.home import Busy, Home, Service
from gateway.local.machine import FREE_BYTES_MIN, MachineUnfit, check_port, check_space, existing
from gateway.local.ports import LOOPBACK, free_port
from gateway.local.status import lines


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


def ourselves(name: str, started_before: float = 0) -> Service:
    return Service(name, os.getpid(), psutil.Process().create_time() - started_before, 0, "/dev/null")


def test_two_commands_never_work_on_one_folder(home: Home) -> None:
    with home.locked(), pytest.raises(Busy, match="another"), home.locked():
        raise AssertionError("the second had the lock too")
    with home.locked():
        pass


def test_secrets_are_made_once_and_for_us_alone(home: Home) -> None:
    first = home.secret("pepper")
    assert len(first) >= 32
    assert home.secret("pepper") == first
    assert stat.S_IMODE(home.secret_file("pepper").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.secret_file("pepper").parent.stat().st_mode) == 0o700


def test_a_port_stays_until_somebody_else_has_it(home: Home) -> None:
    import socket

    port = home.port("valkey")
    assert home.port("valkey") == port
    with socket.socket() as other:
        other.bind((LOOPBACK, port))
        other.listen()
        assert home.port("valkey") != port


@pytest.mark.parametrize("broken", ["", "{", "[1]", '[{"name": "gateway"}]'])
def test_a_broken_state_file_is_like_none(home: Home, broken: str) -> None:
    (home.folder / "state.json").write_text(broken)
    assert home.services() == []
    home.record(ourselves("gateway"))
    assert home.find("gateway") is not None


def test_a_pid_that_somebody_else_has_now_is_not_our_service(home: Home) -> None:
    home.record(ourselves("gateway", started_before=3600))
    assert home.find("gateway") is None
    assert [line.state for line in lines(home)] == ["gone"]


def test_the_environment_for_commands_is_kept_privately(home: Home) -> None:
    values = {"DATABASE_URL": "postgresql://u:p=w@h/d", "FAREGATE_PORT": "8080"}
    home.keep_environment(values)
    assert home.environment() == values
    assert stat.S_IMODE((home.folder / "environment").stat().st_mode) == 0o600


def test_a_taken_port_is_one_line_with_the_way_out() -> None:
    import socket

    port = free_port()
    with socket.socket() as other:
        other.bind((LOOPBACK, port))
        other.listen()
        with pytest.raises(MachineUnfit, match=rf"port {port} for the gateway is taken.*make up PORT=<port>"):
            check_port(port, "the gateway", "PORT")


def test_space_is_asked_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    assert existing(tmp_path / "not" / "yet") == tmp_path


def test_a_full_disk_is_one_line_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_space(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=FREE_BYTES_MIN - 1))
    with pytest.raises(MachineUnfit, match=r"511 MB free and 512 MB are needed; make room, or set FAREGATE_HOME"):
        check_space(tmp_path)
