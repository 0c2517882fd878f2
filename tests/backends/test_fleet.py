"""The fleet file: what it says, and what it may not say."""

from pathlib import Path

import pytest

from backends.engines.llamacpp import LLAMACPP
from backends.engines.vllm import VLLM
from backends.fleet import Fleet, InvalidFleet, Replica

GOOD = """\
# two replicas of one model, one of another
[[replica]]
id = "gpu-a"
model = "llama-3.1-8b"
engine = "vllm"
url = "https://10.0.0.1:8000/behind"
slots = 64
context = 131072
engine_model = "meta-llama/Llama-3.1-8B-Instruct"
api_key_file = "engine.key"

[[replica]]
id = "gpu-b"
model = "llama-3.1-8b"
engine = "vllm"
url = "http://[::1]"
slots = 32

[[replica]]
id = "cpu"
model = "smollm2-135m-instruct"
engine = "llamacpp"
url = "http://127.0.0.1:9000"
slots = 4
"""


def load(folder: Path, text: str) -> Fleet:
    path = folder / "fleet.toml"
    path.write_text(text)
    return Fleet.load(path)


def test_replicas_and_their_pools(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret\n")
    fleet = load(tmp_path, GOOD)
    a, b, cpu = fleet.replicas
    assert (a.host, a.port, a.is_tls, a.base_path, a.authority) == ("10.0.0.1", 8000, True, "/behind", "10.0.0.1:8000")
    assert (a.slots, a.context, a.engine, a.api_key) == (64, 131072, VLLM, "secret")
    assert (a.engine_model, b.engine_model) == ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b")
    assert (b.host, b.port, b.authority, b.origin, b.context) == ("::1", 80, "[::1]:80", "http://[::1]:80", None)
    assert cpu.engine is LLAMACPP
    assert fleet.pools() == {"llama-3.1-8b": [a, b], "smollm2-135m-instruct": [cpu]}
    assert fleet.replica("gpu-b") is b
    assert fleet.replica("gpu-c") is None


def test_a_replica_may_say_what_its_weights_are_served_in(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret")
    fleet = load(tmp_path, GOOD.replace("slots = 64", 'slots = 64\nprecision = "fp8"'))
    assert [replica.precision for replica in fleet.replicas] == ["fp8", None, None]


def test_a_replica_may_say_what_it_costs(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret")
    fleet = load(tmp_path, GOOD.replace("slots = 64", "slots = 64\ncost_cents_per_hour = 250"))
    assert [replica.cost_cents_per_hour for replica in fleet.replicas] == [250, None, None]


def test_accounts_share_prefixes_only_where_the_operator_says_so(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret\n")
    assert not load(tmp_path, GOOD).share_prefixes
    assert load(tmp_path, "share_prefixes = true\n" + GOOD).share_prefixes


def test_an_engines_key_is_not_shown_with_its_replica(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret")
    assert "secret" not in repr(load(tmp_path, GOOD))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("slots = 32", "slots = 0", r"fleet\.toml, line 17: replica gpu-b: slots: .*greater than or equal to 1"),
        ("slots = 32", "slots = 4097", r"line 17: replica gpu-b: slots: .*less than or equal to 4096"),
        ("slots = 32", 'slots = "32"', r"line 17: replica gpu-b: slots: .*valid integer"),
        ("slots = 32", "slots = 32\nline = 32", r"line 18: replica gpu-b: line: .*some must be left that run"),
        ("slots = 32", "", r"line 12: replica gpu-b: slots: Field required"),
        ("slots = 32", "slots = 32\nslot = 1", r"line 18: replica gpu-b: slot: Extra inputs"),
        ('engine = "llamacpp"', 'engine = "ollama"', r"line 22: replica cpu: engine: 'ollama' is none of vllm, sglang, llamacpp"),
        ("http://127.0.0.1:9000", "127.0.0.1:9000", r"line 23: replica cpu: url: '127.0.0.1:9000' is no http"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/v1", r"line 23: replica cpu: url: .*leave out /v1"),
        ("http://127.0.0.1:9000", "http://u:p@127.0.0.1:9000", r"line 23: .*more than a host"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:99999", r"line 23: replica cpu: url: Port out of range"),
        ('id = "cpu"', 'id = "gpu-a"', r"two replicas have the id 'gpu-a'"),
        ('id = "cpu"', 'id = "a b"', r"line 20: replica a b: id: "),
        ("[[replica]]", "[[replicas]]", r"fleet\.toml: replica: Field required"),
        ("slots = 4", 'slots = 4\nprecision = "8 bits"', r"line 25: replica cpu: precision: "),
        ("slots = 4", "slots = 4\ncost_cents_per_hour = 2.5", r"line 25: replica cpu: cost_cents_per_hour: .*valid integer"),
        ("slots = 4", "slots = 4\npriority = true", r"line 25: replica cpu: priority: llamacpp knows no priorities"),
        ("slots = 4", 'slots = 4\noverflow = "never"', r"line 25: replica cpu: overflow: only a replica with dedicated_to"),
        ("slots = 4", 'slots = 4\ndedicated_to = "a{b"', r"line 25: replica cpu: dedicated_to: String should match"),
        ("slots = 4", 'slots = 4\ndedicated_to = "a"\noverflow = "sometimes"', r"line 26: .*overflow: Input should be"),
        ('id = "cpu"', "id = cpu", r"fleet\.toml is no TOML: .*line 20"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_file_line_and_field(tmp_path: Path, old: str, new: str, says: str) -> None:
    (tmp_path / "engine.key").write_text("secret")
    assert old in GOOD
    with pytest.raises(InvalidFleet, match=says):
        load(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize(("key", "says"), [(None, "can't be read"), ("", "holds no key"), ("a\r\nb", "holds no key")])
def test_a_key_file_that_is_of_no_use(tmp_path: Path, key: str | None, says: str) -> None:
    if key is not None:
        (tmp_path / "engine.key").write_text(key)
    with pytest.raises(InvalidFleet, match=rf"line 10: replica gpu-a: api_key_file: engine\.key {says}"):
        load(tmp_path, GOOD)


def test_no_file_and_no_replica(tmp_path: Path) -> None:
    with pytest.raises(InvalidFleet, match=r"fleet\.toml can't be read: No such file"):
        Fleet.load(tmp_path / "fleet.toml")
    with pytest.raises(InvalidFleet, match="replica: Field required"):
        load(tmp_path, "")
    with pytest.raises(InvalidFleet, match="at least 1 item"):
        load(tmp_path, "replica = []")


UPSTREAM = """
[[replica]]
id = "rented"
model = "qwen3-8b"
engine = "upstream"
url = "https://api.example.com"
slots = 4
api_key_env = "VENDOR_KEY"
prompt_cents = 20
completion_cents = 60
cap_cents_per_month = 100
"""


def test_an_upstream_is_off_until_it_is_said_to_be_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "engine.key").write_text("secret")
    assert load(tmp_path, GOOD + UPSTREAM).replica("rented") is None
    monkeypatch.setenv("VENDOR_KEY", "sk-1")
    rented = load(tmp_path, GOOD + UPSTREAM + "enabled = true\n").replica("rented")
    assert rented is not None
    assert rented.price is not None
    assert (rented.api_key, rented.price.microcents(1000, 10)) == ("sk-1", 20_600)
    assert (rented.price.allows(99_999_999), rented.price.allows(100_000_000)) == (True, False)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("cap_cents_per_month = 100\n", "", "an upstream has prompt_cents"),
        ('api_key_env = "VENDOR_KEY"\n', "", "a key of its own"),
        ('"upstream"', '"vllm"', "of engine upstream alone"),
        ("https://api.example.com", "https://api.example.com/v1", "leave out /v1"),
        ("slots = 4", "slots = 4\nenabled = true", "replica rented: api_key_env: VENDOR_KEY holds no key"),
    ],
)
def test_an_upstream_has_a_price_a_cap_and_a_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    (tmp_path / "engine.key").write_text("secret")
    with pytest.raises(InvalidFleet, match=says):
        load(tmp_path, GOOD + UPSTREAM.replace(old, new))


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a/?x=1", "http://a/#f", "http://a b", "http://a/\r\nx: y"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"http|host"):
        Replica.at(url, name="a", model="m", engine=VLLM, slots=1)


def test_dedicated_replicas_are_in_nobody_elses_pool(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret")
    own = 'slots = 32\npriority = true\ndedicated_to = "Acme, Inc."\noverflow = "shared"\n'
    fleet = load(tmp_path, GOOD.replace("slots = 32\n", own))
    a, b, cpu = fleet.replicas
    assert fleet.pools() == {"llama-3.1-8b": [a], "smollm2-135m-instruct": [cpu]}
    assert fleet.dedicated() == {("Acme, Inc.", "llama-3.1-8b"): [b]}
    assert (a.has_priority, b.has_priority, b.overflow, cpu.dedicated_to) == (False, True, "shared", "")


def test_the_replicas_of_one_account_state_one_overflow(tmp_path: Path) -> None:
    (tmp_path / "engine.key").write_text("secret")
    text = GOOD.replace("slots = 64\n", 'slots = 64\ndedicated_to = "acme"\noverflow = "never"\n')
    assert load(tmp_path, text.replace("slots = 32\n", 'slots = 32\ndedicated_to = "other"\n')).pools()
    with pytest.raises(InvalidFleet, match=r"llama-3\.1-8b dedicated to 'acme' disagree on overflow"):
        load(tmp_path, text.replace("slots = 32\n", 'slots = 32\ndedicated_to = "acme"\n'))
