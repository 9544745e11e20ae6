"""The texts of the interface: both languages are whole, all that is used is there, and nothing is written elsewhere."""

from __future__ import annotations

import ast
import importlib
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox_chat
from sandbox_chat import words
from sandbox_chat.words import choose, tr, tr_count, use

ROOT = Path(sandbox_chat.__file__).parent
ROOMS = sorted(path.stem for path in (ROOT / "words").glob("*.py") if path.stem != "__init__")
SOURCES = [path for path in sorted(ROOT.rglob("*.py")) if "words" not in path.relative_to(ROOT).parts[:1]]
TABLES = {room: importlib.import_module(f"sandbox_chat.words.{room}") for room in ROOMS}
KEYS = {f"{room}.{name}" for room, table in TABLES.items() for name in table.EN}

CJK = "\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff"
HAN = "\u3400-\u9fff"


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    use("en")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("room", ROOMS)
def test_both_tables_have_the_same_keys_and_placeholders(room: str) -> None:
    english, chinese = TABLES[room].EN, TABLES[room].ZH
    assert list(english) == list(chinese)
    for name, text in english.items():
        assert placeholders(text) == placeholders(chinese[name]), name


@pytest.mark.parametrize("room", ROOMS)
def test_a_key_stands_in_a_table_once(room: str) -> None:
    tree = ast.parse((ROOT / "words" / f"{room}.py").read_text(encoding="utf-8"))
    for table in (node for node in ast.walk(tree) if isinstance(node, ast.Dict)):
        keys = [key.value for key in table.keys if isinstance(key, ast.Constant)]
        assert len(keys) == len(set(keys))


SLIPS = {
    "an ASCII mark after a Chinese character": re.compile(rf"[{HAN}][,;:!?](?!\d)|[{HAN}]\.(?:\s|$)"),
    "an ASCII parenthesis at a Chinese character": re.compile(rf"[{HAN}]\(|\)[{HAN}]"),
    "a blank between Chinese characters": re.compile(rf"[{HAN}] [{HAN}]"),
    "a blank at a full-width mark": re.compile(r" [，。；：！？、（）]|[，。；：！？、（] "),
    "two marks in a row": re.compile(r"[，。；：！？、]{2}"),
    "the other form of address": re.compile("您"),
    "a straight quote": re.compile(r'["\']'),
    "a traditional character": re.compile("[們個這對話說開關閉檔]"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_chinese_is_punctuated_as_chinese(room: str) -> None:
    found = [
        (name, slip)
        for name, text in TABLES[room].ZH.items()
        for slip, pattern in SLIPS.items()
        if pattern.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("room", ROOMS)
def test_english_has_no_chinese_in_it(room: str) -> None:
    for name, text in TABLES[room].EN.items():
        assert not re.search(rf"[{CJK}\uff00-\uffef]", text), name


TERMS = {
    "session": "会话",
    "transcript": "对话记录",
    "sandbox": "沙箱",
    "tool call": "工具调用",
    "context": "上下文",
}


@pytest.mark.parametrize(("term", "chinese"), TERMS.items())
def test_the_same_things_are_called_the_same(term: str, chinese: str) -> None:
    pattern = re.compile(rf"(?<![-/])\b{term}s?\b(?!-chat)", re.IGNORECASE)
    for room, table in TABLES.items():
        for name, text in table.EN.items():
            plain = text.replace("Sandbox Chat", "").replace("sandbox-chat", "")
            if pattern.search(plain) and term not in LOOSE.get(f"{room}.{name}", ""):
                assert chinese in table.ZH[name], f"{room}.{name}"


LOOSE: dict[str, str] = {}
"""Texts whose Chinese says a thing without its name, by key."""


# -- what the source uses ------------------------------------------------------------------------------------


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("tr", "tr_count")
        ):
            yield node


def patterns_of(node: ast.expr) -> list[str]:
    """The keys that an argument of ``tr`` may be, as regular expressions; none for what is not written there."""
    match node:
        case ast.Constant(value=str(value)):
            return [re.escape(value)]
        case ast.JoinedStr(values=values):
            return [
                "".join(
                    re.escape(str(v.value)) if isinstance(v, ast.Constant) else r"[\w.-]+" for v in values
                )
            ]
        case ast.IfExp(body=body, orelse=orelse):
            return patterns_of(body) + patterns_of(orelse)
        case _:
            return []


def used() -> tuple[set[str], list[str], set[str]]:
    """Keys that ``tr`` names, patterns of those that are put together, and all strings that look like keys."""
    exact: set[str] = set()
    patterns: list[str] = []
    strings: set[str] = set()
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in calls(tree):
            assert isinstance(call.func, ast.Name)
            suffix = r"\.(one|many)" if call.func.id == "tr_count" else ""
            for pattern in patterns_of(call.args[0]):
                patterns.append(pattern + suffix)
                if not suffix and "[" not in pattern:
                    exact.add(re.sub(r"\\(.)", r"\1", pattern))
        strings |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[\w.-]+", node.value)
        }
    return exact, patterns, strings


def test_every_text_that_is_asked_for_exists() -> None:
    exact, patterns, _ = used()
    assert exact - KEYS == set()
    for pattern in patterns:
        assert any(re.fullmatch(pattern, key) for key in KEYS), pattern


def test_every_text_is_asked_for() -> None:
    _, patterns, strings = used()
    whole = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    # The keys of Textual's own fields are looked up by what Textual calls the action.
    spare = {
        key
        for key in KEYS
        if not whole.fullmatch(key) and key not in strings and not key.startswith("editing.")
    }
    assert spare == set()


# -- texts that stand elsewhere ------------------------------------------------------------------------------

SHOWS = {
    "Content",
    "styled",
    "Static",
    "Part",
    "say",
    "notify",
    "Header",
    "Label",
    "Run",
    "assemble",
    "NoticeBlock",
    "PictureError",
}
"""What puts a text on the screen, by the name of the function."""
NAMES = {"sandbox-chat", "Sandbox Chat", "unsafe-local"}
"""Names, which are the same in every language."""


def written(node: ast.expr, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The words that an expression may be: literal, parts of an f-string, of each branch, of the name it was given."""
    match node:
        case ast.Constant(value=str(value)):
            yield value
        case ast.JoinedStr(values=values):
            for part in values:
                yield from written(part, names)
        case ast.FormattedValue(value=ast.Name() as value):
            yield from written(value, names)
        case ast.IfExp(body=body, orelse=orelse):
            yield from written(body, names)
            yield from written(orelse, names)
        case ast.Name(id=name):
            for value in names.get(name, ()):
                yield from written(value, {})


NAMED_FIRST = {"assemble", "NoticeBlock"}
"""Those whose arguments are names of styles and kinds too, in one lower-case word."""


def is_kind(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(value)):
            return re.fullmatch(r"[a-z]+", value) is not None
        case ast.IfExp(body=body, orelse=orelse):
            return is_kind(body) and is_kind(orelse)
        case _:
            return False


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Words in the arguments of what shows text."""
    names: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in SHOWS:
            continue
        shown = node.args if name in NAMED_FIRST else node.args[:1]
        if name == "Part" and node.args and is_kind(node.args[0]):
            shown = node.args[1:2]  # of a part of an output or a draft
        for argument in shown:
            first = argument.elts[0] if isinstance(argument, ast.Tuple) and argument.elts else argument
            for text in written(first, names):
                if not (name in NAMED_FIRST and is_kind(argument)):
                    yield node.lineno, text


def test_no_text_of_the_interface_stands_elsewhere() -> None:
    found = []
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("ui/"):
            continue
        for line, text in literals(ast.parse(path.read_text(encoding="utf-8"))):
            if re.search(r"[A-Za-z]{2}", text) and text.strip(" ·") not in NAMES:
                found.append(f"{name}:{line} {text!r}")
    assert found == [], "\n".join(found)


def test_the_search_for_texts_finds_them() -> None:
    tree = ast.parse(
        'Content("x")\nself.status.say(f"Gone {x}")\nContent.assemble(("› ", "a"), ("two words", ""))'
    )
    assert [text for _, text in literals(tree)] == ["x", "Gone ", "› ", "two words"]
    tree = ast.parse(
        'label = "Old one" if x else "New one"\nRun(f"{label}  ", ("muted",))\nPart("note", f"\\n{n} cut")'
    )
    assert [text for _, text in literals(tree)] == ["Old one", "New one", "  ", "\n", " cut"]


# -- the mechanism -------------------------------------------------------------------------------------------


def test_texts_come_in_the_language_that_is_set() -> None:
    assert tr("status.thinking", seconds="1.2 s") == "thinking 1.2 s"
    assert tr_count("hint.unseen", 1, key="^End").startswith("↓ 1 new line ")
    assert tr_count("hint.unseen", 1200, key="^End").startswith("↓ 1,200 new lines ")
    use("zh")
    assert words.language() == "zh"
    assert tr("status.thinking", seconds="1.2 s") == "正在思考 1.2 s"
    use("tlh")
    assert words.language() == "en"


def test_signs_are_written_for_the_terminal_but_values_are_not() -> None:
    use("en", lambda text: text.replace("⋯", "..."))
    assert tr("waiting.early", prompt="a ⋯ b") == "... goes out when connected: a ⋯ b"


def test_a_missing_text_is_a_fault() -> None:
    with pytest.raises(KeyError):
        tr("status.nothing_like_it")


@pytest.mark.parametrize(
    ("setting", "environment", "language"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("auto", {"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ("auto", {"LC_MESSAGES": "zh_TW", "LANG": "C"}, "zh"),
        ("auto", {"LANG": "de_DE"}, "en"),
        ("auto", {}, "en"),
    ],
)
def test_which_language(setting: str, environment: dict[str, str], language: str) -> None:
    assert choose(setting, environment) == language
