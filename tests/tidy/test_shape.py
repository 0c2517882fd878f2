"""Files and functions stay small, say what they are for, and do nothing when they are imported."""

import ast
import re

from tests.tidy.source import PACKAGES, ROOT, name, product_files, python_files, tracked_files, tree

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5
# Names that say nothing of the one capability of one noun that a file holds.
BANNED_STEMS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "service", "misc", "lib"}
# Reading, connecting and starting are work, and belong into a function that somebody calls.
WORK = re.compile(r"(^|\.)(open|read_text|read_bytes|connect|getenv|urlopen|run|Popen|create_engine|from_url|load|loads)$")


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (name(path), node)
        for path in python_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_files_are_small() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    sizes |= {
        name(path): len(path.read_text(encoding="utf-8").splitlines()) for top in PACKAGES for path in (ROOT / top).rglob("*.lua")
    }
    assert {path: size for path, size in sizes.items() if size > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    lengths = {f"{path}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for path, node in functions()}
    assert {where: length for where, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}


def test_functions_take_at_most_five_positional_parameters() -> None:
    found = {}
    for path, node in functions():
        if path.startswith("tests/"):
            continue
        positional = [argument.arg for argument in node.args.posonlyargs + node.args.args if argument.arg not in ("self", "cls")]
        is_command = any("command" in ast.dump(decorator) for decorator in node.decorator_list)
        if len(positional) > PARAMETERS_MAX and not is_command:
            found[f"{path}:{node.name}"] = len(positional)
    assert found == {}


def test_every_file_says_in_one_sentence_what_it_is_for() -> None:
    silent = [name(path) for path in python_files() if path.stat().st_size and not ast.get_docstring(tree(path))]
    assert silent == []
    rambling = [
        name(path)
        for path in product_files()
        if path.stat().st_size and len((ast.get_docstring(tree(path)) or "").split("\n\n")[0].splitlines()) > 2
    ]
    assert rambling == []


def test_files_are_named_for_what_they_are_about() -> None:
    assert [name(path) for path in python_files() if path.stem.lower().strip("_") in BANNED_STEMS] == []


def test_importing_does_no_work() -> None:
    """Alembic's `env.py` is a script: being imported is how it is run."""
    working = []
    for path in product_files():
        if name(path) == "migrations/env.py":
            continue
        for statement in tree(path).body:
            if isinstance(statement, ast.For | ast.While | ast.With):
                working.append(f"{name(path)}:{statement.lineno}: {type(statement).__name__}")
            if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
                calls = [ast.unparse(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)]
                working += [f"{name(path)}:{statement.lineno}: {call}()" for call in calls if WORK.search(call)]
    assert working == []


def test_nothing_is_left_for_later() -> None:
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
    left = [
        f"{name(path)}:{number}"
        for path in tracked_files()
        if path.suffix in {".py", ".lua", ".md", ".toml", ".yml", ".sh", ""} and path.name != "LICENSE"
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if mark.search(line)
    ]
    assert left == []


def test_the_environment_is_read_in_one_place() -> None:
    """`cli` hands the local run's values to it, `crash` is the tests' own switch, and `local` makes what it reads. A
    fleet file names the variables of its engines' keys."""
    allowed = ("gateway/settings.py", "gateway/cli.py", "gateway/crash.py", "gateway/local/", "backends/entry.py")
    reading = [
        name(path)
        for path in product_files()
        if re.search(r"os\.(environ|getenv)", path.read_text(encoding="utf-8")) and not name(path).startswith(allowed)
    ]
    assert reading == []


def test_no_tokenizer_is_at_hand() -> None:
    """litellm#36429: on a hang-up the text was tokenized again on the event loop, until the process was taken for dead."""
    tokenizers = {"tiktoken", "tokenizers", "transformers", "sentencepiece"}
    importing = [
        f"{name(path)}: {module}"
        for path in product_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if module.partition(".")[0] in tokenizers
    ]
    assert importing == []
