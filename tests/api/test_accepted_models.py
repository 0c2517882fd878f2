"""A model whose licence forbids selling, or is unknown, is served once an admin has accepted it, and not before."""

from pathlib import Path

import pytest

from backends.fleet import Fleet
from backends.roster import Roster
from gateway.errors import Refusal
from gateway.log import Log
from gateway.wiring import _menu
from models.catalogue import Catalogue, ModelUnknown

REPLICA = '[[replica]]\nid = "{0}{1}"\nmodel = "{0}"\nengine = "vllm"\nurl = "http://127.0.0.1:1"\nslots = 1\n'
CATALOGUE = Catalogue.load()


@pytest.fixture
def roster(tmp_path: Path) -> Roster:
    file = tmp_path / "fleet.toml"
    dedicated = REPLICA.format("minimax-m2.7", "-own") + 'dedicated_to = "acme"\n'
    file.write_text(REPLICA.format("qwen3-8b", "") + REPLICA.format("minimax-m2.7", "") + dedicated)
    return Roster(Fleet.load(file))


def test_without_acceptance_it_is_not_served_to_anybody(roster: Roster, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log("info", gateway="g")
    menu = _menu(CATALOGUE, roster, (), log)
    log.flush()
    assert [dish.model.id for dish in menu.dishes()] == ["qwen3-8b"]
    assert menu.pool_names() == ["qwen3-8b"]
    for account in ("", "acme"):
        with pytest.raises(Refusal, match="not served here"):
            menu.find("minimax-m2.7", account)
    assert capfd.readouterr().out.count("model_not_accepted") == 1


def test_with_it_it_is(roster: Roster) -> None:
    menu = _menu(CATALOGUE, roster, ("MiniMaxAI/MiniMax-M2.7",), Log("info", gateway="g"))
    assert menu.find("minimax-m2.7").model.commercial_use == "no"
    assert [way.pool for way in menu.find("minimax-m2.7", "acme").ways] == ["minimax-m2.7@acme"]


def test_an_accepted_model_that_is_none_stops_the_start(roster: Roster) -> None:
    with pytest.raises(ModelUnknown, match="Did you mean minimax"):
        _menu(CATALOGUE, roster, ("minimax-m27",), Log("info", gateway="g"))
