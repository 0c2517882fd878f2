"""Coding agents set up as docs/clients/programs.md says: one prompt, its tools, and what they do when a call fails."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.conformance.clients.counting import Counted
from tests.conformance.clients.limits import another_stream, ask, one_a_day, one_at_once
from tests.conformance.clients.pages import PROMPT, rows, snippets
from tests.conformance.clients.programs import OUT_OF_TIME, Done, Machine
from tests.conformance.test_responses import script
from tests.conformance.test_responses_failing import BROKEN, WHY
from tests.support.gateway import Running, Town

pytestmark = pytest.mark.clients
TEXT = "tok tok tok"
TABLE = rows("clients.md", "client")
# Clients that never give up are stopped by the gateway; in a test after so many failures, where the default is 20.
STOPPED, FAILURES = "21, then stopped", 4
TOO_OFTEN = "failed each time, so it was not tried again"
Counting = Callable[..., Counted]


@dataclass(frozen=True, slots=True)
class Program:
    """`file` is where its configuration goes; `tool` runs a command, with these arguments. `quotes`: each of its arguments that
    has a space comes to the engine between quotation marks."""

    name: str
    file: str = ""
    tool: str = ""
    arguments: str = ""
    quotes: bool = False

    def __str__(self) -> str:
        return self.name

    def run(self, machine: Machine, counts: Counted, prompt: str = PROMPT, *, seconds: float = 50) -> Done:
        for snippet in snippets("clients/programs.md", self.name):
            words = _spaceless(prompt) if self.quotes else [prompt]
            text = snippet.told(counts.gateway.url, counts.customer.token, *words)
            if snippet.language == "sh":
                done = machine.shell(text, seconds)
            else:
                machine.write(self.file, text)
        return done


def _spaceless(prompt: str) -> list[str]:
    """A script for the engine as two arguments without a space in them."""
    mark, found, steps = prompt.partition(" {")
    if not found:
        return [prompt]
    return [mark, json.dumps(json.loads("{" + steps), separators=(",", ":")).replace(" ", "\\u0020")]


def command(**arguments: object) -> str:
    return json.dumps(arguments)


AIDER = Program("Aider")
OPENCODE = Program("OpenCode", "opencode.json", "bash", command(command="echo fare-$((40 + 2))", description="adds"), quotes=True)
CLINE = Program("Cline", "", "run_commands", command(commands=["echo fare-$((40 + 2))"]))
CONTINUE = Program("Continue", ".continue/config.yaml", "Bash", command(command="echo fare-$((40 + 2))"))
PROGRAMS = (AIDER, OPENCODE, CLINE, CONTINUE)
each = pytest.mark.parametrize("program", PROGRAMS, ids=str)


@pytest.fixture
def counts(installation: Town, counted: Counting) -> Counted:
    return counted(installation.key())


@each
def test_one_prompt_is_one_request_and_one_fare(program: Program, machine: Machine, counts: Counted) -> None:
    done = program.run(machine, counts)
    assert done.returncode == 0, done.stderr
    assert TEXT in done.stdout
    assert counts.arrivals() == 1
    assert counts.verdicts() == ["posted"]


@pytest.mark.parametrize("program", [OPENCODE, CLINE, CONTINUE], ids=str)
def test_a_command_that_the_model_calls_for_is_run(program: Program, machine: Machine, counts: Counted) -> None:
    done = program.run(machine, counts, script(tool=True, tool_name=program.tool, tool_arguments=program.arguments))
    assert TEXT in done.stdout, done.stderr
    assert counts.verdicts() == ["posted", "posted"]
    results = [message for message in counts.received()[-1]["messages"] if message["role"] == "tool"]
    assert "fare-42" in json.dumps(results)


@each
def test_an_error_in_the_request_is_said_once(program: Program, machine: Machine, counts: Counted) -> None:
    done = program.run(machine, counts, script(status=400))
    assert "as the script says" in done.stdout + done.stderr
    assert counts.arrivals() == int(TABLE[program.name]["calls after a 400"])
    assert set(counts.verdicts()) == {"voided"}


@each
def test_a_busy_engine_is_asked_as_often_as_the_table_says_and_costs_nothing(
    program: Program, machine: Machine, installation: Town, counted: Counting
) -> None:
    expected = TABLE[program.name]["calls when all is busy (503, 529)"]
    counts = counted(installation.key(), _stopping(installation) if expected == STOPPED else None)
    done = program.run(machine, counts, script(status=503), seconds=100)
    assert (TOO_OFTEN if expected == STOPPED else "All GPUs for this model are busy.") in _words(done)
    assert counts.arrivals() == (FAILURES + 1 if expected == STOPPED else int(expected))
    assert set(counts.verdicts()) == {"voided"}


# They wait between their tries, longer each time.
@pytest.mark.timeout(200)
@each
def test_a_spent_quota_is_said(program: Program, machine: Machine, installation: Town, counted: Counting) -> None:
    counts = counted(one_a_day(installation))
    ask(counts)
    done = program.run(machine, counts, seconds=150)
    assert "You have used 1 of 1 requests today" in _words(done)
    assert counts.arrivals() == 1 + int(TABLE[program.name]["calls when the quota is spent"])
    assert counts.verdicts() == ["posted"]


@each
def test_a_limit_that_ends_in_seconds_is_waited_out(
    program: Program, machine: Machine, installation: Town, counted: Counting
) -> None:
    counts = counted(one_at_once(installation))
    with another_stream(counts):
        done = program.run(machine, counts)
    assert TEXT in done.stdout, done.stderr
    assert counts.verdicts() == ["posted", "posted"]


@each
def test_a_stream_that_breaks_is_said_and_costs_nothing(
    program: Program, machine: Machine, installation: Town, counted: Counting
) -> None:
    """Cline leaves it at that; the others go on until they are stopped."""
    counts = counted(installation.key(), _stopping(installation))
    done = program.run(machine, counts, script(**BROKEN[1]), seconds=100)
    assert done.returncode != OUT_OF_TIME
    assert (WHY if program is CLINE else TOO_OFTEN) in _words(done)
    assert counts.arrivals() == (1 if program is CLINE else FAILURES + 1)
    assert set(counts.verdicts()) == {"voided"}


def test_a_session_without_a_title_is_two_requests(machine: Machine, counts: Counted) -> None:
    """As the page says of OpenCode."""
    config, start = snippets("clients/programs.md", "OpenCode")
    machine.write(OPENCODE.file, config.told(counts.gateway.url, counts.customer.token))
    untitled = start.told(counts.gateway.url, counts.customer.token).replace('--title "A joke" ', "")
    assert TEXT in machine.shell(untitled).stdout
    assert counts.arrivals() == 2
    assert counts.verdicts() == ["posted", "posted"]


def _stopping(town: Town) -> Running:
    return town.gateway(loop_errors=FAILURES)


def _words(done: Done) -> str:
    """All that it printed, where a terminal's width broke no line."""
    return " ".join((done.stdout + done.stderr).split())
