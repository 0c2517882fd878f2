"""What documents say is so: settings, commands, targets and files that they name exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from gateway.cli import app, register_others
from gateway.settings import Settings
from tests.tidy.source import ROOT, name, tracked_files

DOCUMENTS = [path for path in tracked_files() if path.suffix == ".md"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


@pytest.fixture(scope="module")
def commands() -> set[str]:
    """`up`, `accounts create`, ..."""
    register_others()
    return set(_paths(get_command(app)))


def _paths(command: object, above: str = "") -> list[str]:
    nested = getattr(command, "commands", {})
    found = []
    for word, child in nested.items():
        found += [f"{above}{word}", *_paths(child, f"{above}{word} ")]
    return found


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    spelled = {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}
    missing = [field for field in Settings.model_fields if f"`{spelled.get(field, f'FAREGATE_{field.upper()}')}`" not in text]
    assert missing == []


def test_documents_name_no_setting_that_is_not_there() -> None:
    known = {f"FAREGATE_{field.upper()}" for field in Settings.model_fields}
    known |= {"FAREGATE_KEY_PEPPER_FILE", "FAREGATE_HOME", "FAREGATE_PUBLISH", "FAREGATE_FLEET", "FAREGATE_CRASH_AT"}
    known |= {"FAREGATE_STRIPE_KEY_FILE", "FAREGATE_STRIPE_WEBHOOK_SECRET_FILE"}
    known |= {"FAREGATE_DATABASE_URL_FILE", "FAREGATE_REDIS_URL_FILE", "FAREGATE_"}
    named = {word for path in DOCUMENTS for word in re.findall(r"FAREGATE_[A-Z_]*", path.read_text(encoding="utf-8"))}
    assert named - known == set()


def test_every_command_in_the_documents_exists(commands: set[str]) -> None:
    groups = {command.split()[0] for command in commands if " " in command}
    wrong = []
    for path in DOCUMENTS:
        for first, second in re.findall(r"faregate ([a-z]+)(?: ([a-z][a-z-]*))?", "\n".join(_code(path))):
            named = f"{first} {second}" if first in groups and second else first
            if named not in commands:
                wrong.append(f"{name(path)}: faregate {named}")
    assert wrong == []


def test_every_make_target_in_the_documents_exists() -> None:
    wrong = [
        f"{name(path)}: make {target}"
        for path in DOCUMENTS
        for target in re.findall(r"\bmake ([a-z-]+)", "\n".join(_code(path)))
        if target not in TARGETS
    ]
    assert wrong == []


def test_every_file_that_the_documents_name_exists() -> None:
    wrong = [
        f"{name(path)}: {named}"
        for path in DOCUMENTS
        for named in re.findall(
            r"`((?:gateway|billing|models|backends|migrations|tests|deploy|docs|requirements)/[\w./-]+\.\w+)`", path.read_text()
        )
        if not (ROOT / named).exists()
    ]
    assert wrong == []


def test_the_modules_that_make_runs_exist() -> None:
    modules = [module for module in re.findall(r"-m ([\w.]+)", MAKEFILE) if module.split(".")[0] in {"gateway", "tests"}]
    assert [module for module in modules if not _module_file(module)] == []


def _module_file(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_ci_runs_what_a_change_must_pass() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    called = re.findall(r"^make ([a-z-]+)", script, re.MULTILINE)
    assert called[:2] == ["check", "test"]
    assert set(called) <= TARGETS
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_check_looks_at_style_types_arrows_and_these_rules() -> None:
    recipe = MAKEFILE.split("\ncheck:")[1].split("\n\n")[0]
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "tests/tidy"):
        assert tool in recipe


@pytest.mark.parametrize("lock", ["runtime.txt", "local.txt", "dev.txt", "model.txt"])
def test_locks_pin_by_hash_and_name_no_index(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry.strip() and not entry.startswith("#")]
    assert entries
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_locks_have_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = {"runtime.txt": [], "local.txt": extras["local"], "dev.txt": extras["local"] + extras["dev"]}
    for lock, more in wanted.items():
        pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / lock).read_text(encoding="utf-8"), re.MULTILINE))
        needed = {re.split(r"[\[>=<;]", need)[0].strip().lower() for need in project["dependencies"] + more}
        assert needed - pinned == set(), lock


def test_the_model_is_locked_without_what_would_be_compiled() -> None:
    everything = "".join(
        (ROOT / "requirements" / lock).read_text() for lock in ("runtime.txt", "local.txt", "dev.txt", "model.txt")
    )
    assert "llama-cpp-python" not in everything


def test_packages_of_the_distribution_are_all_there_are() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    tops = {package.split(".")[0] for package in declared}
    found = {".".join(path.parent.relative_to(ROOT).parts) for top in tops for path in (ROOT / top).rglob("__init__.py")}
    assert set(declared) == found


def test_no_document_or_source_names_a_machine_of_ours() -> None:
    telling = re.compile(r"/wo" + r"rk/|/root/|\.internal\b|artifactory|nexus")
    found = [
        f"{name(path)}:{number}"
        for path in tracked_files()
        if path.suffix in {".py", ".lua", ".md", ".toml", ".yml", ".txt", ".sh", ""} and path.name != "LICENSE"
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if telling.search(line) and name(path) != "tests/tidy/test_words.py"
    ]
    assert found == []


def test_bootstrap_reads_on_an_old_python_far_enough_to_say_so(tmp_path: Path) -> None:
    """Run on this Python with a higher minimum: the same first branch that an old one takes."""
    source = (ROOT / "gateway" / "local" / "bootstrap.py").read_text(encoding="utf-8")
    folder = tmp_path / "gateway" / "local"
    folder.mkdir(parents=True)
    (folder / "bootstrap.py").write_text(source.replace("PYTHON_MIN = (3, 11)", "PYTHON_MIN = (99, 0)"))
    done = subprocess.run([sys.executable, folder / "bootstrap.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().startswith("faregate: Faregate needs Python 3.11 or newer; this is 3.")
    assert len(done.stderr.strip().splitlines()) == 1
    compile(source, "bootstrap.py", "exec", flags=0, dont_inherit=True)


def _code(path: Path) -> list[str]:
    """What stands in code: fenced blocks and `spans`."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```.*?\n(.*?)```", text, re.DOTALL)
    return blocks + re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def test_the_app_has_a_help_for_every_command(commands: set[str]) -> None:
    assert isinstance(app, typer.Typer)
    assert {"up", "down", "status", "logs", "doctor", "serve", "worker", "migrate"} <= commands
