"""What a local run remembers, and that it keeps its secrets."""

import errno
import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gateway.local.home import Busy, Home, HomeUnfit, Service
from gateway.local.logs import found
from gateway.local.machine import FREE_BYTES_MIN, MachineUnfit, check_port, check_space, existing
from gateway.local.ports import LOOPBACK, free_port
from gateway.local.status import lines
from gateway.local.up import check_ports
from gateway.local.wanted import Wanted


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
    assert {line.state for line in lines(home)} == {"gone"}


def test_an_up_that_failed_midway_left_half_a_platform_that_was_called_well(home: Home) -> None:
    home.record(ourselves("postgres"))
    assert {line.name: line.state for line in lines(home)} == {"postgres": "running", "worker": "gone", "gateway": "gone"}


def test_after_down_there_were_no_logs_to_read(home: Home) -> None:
    home.record(ourselves("valkey"))
    (home.folder / "valkey").mkdir()
    (home.folder / "valkey" / "valkey.log").write_text("why it went\n")
    (home.folder / "gateway.log").write_text("serving\n")
    home.forget("valkey")
    assert [log.name for log in found(home, ("valkey", "gateway", "worker"))] == ["valkey", "gateway"]


@pytest.mark.parametrize("unusable", ["a file", "a folder for state", "another's"])
def test_a_folder_that_can_not_be_used_was_a_traceback(unusable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "broken")
    if unusable == "a file":
        home.folder.write_text("")
    else:
        (home.folder / "state.json").mkdir(parents=True)
        (home.folder / "lock").mkdir()
    if unusable == "another's":
        monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(HomeUnfit, match="FAREGATE_HOME"):
        lines(home)
    with pytest.raises(HomeUnfit), home.locked():
        pass


def denied(path: Path, **_how: str) -> str:
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_an_environment_that_is_no_text_was_a_traceback(home: Home) -> None:
    (home.folder / "environment").write_bytes(b"\xff\xfe\nREDIS_URL=redis://x\n")
    assert home.environment() == {"REDIS_URL": "redis://x"}


def test_the_gateway_was_stopped_for_a_port_that_could_not_be_had(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        home.record(ourselves("gateway"))
        home.keep_environment({"FAREGATE_PORT": "1", "FAREGATE_OPS_PORT": "2"})
        with pytest.raises(MachineUnfit, match="is taken"):
            check_ports(home, Wanted(port, 2))
        check_ports(home, Wanted(2, 1))
    with pytest.raises(MachineUnfit, match="are both"):
        check_ports(home, Wanted(port, port))


def test_the_environment_for_commands_is_kept_privately(home: Home) -> None:
    values = {"DATABASE_URL": "postgresql://u:p=w@h/d", "FAREGATE_PORT": "8080"}
    home.keep_environment(values)
    assert home.environment() == values
    assert stat.S_IMODE((home.folder / "environment").stat().st_mode) == 0o600


def test_a_taken_port_is_one_line_with_the_way_out() -> None:
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
