"""The user's prices of models: how they are written down, found, and what is said of slips."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox_chat.prices import Price, price_of, read_budget, read_prices
from sandbox_chat.settings import ConfigError, Settings, load

FULL = Price(1.0, 2.0, 0.1, 1.25)


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "config.toml").write_text(text)
    return load(environ={"SANDBOX_CHAT_CONFIG_DIR": str(folder)}, folder=folder)


def test_prices_come_from_the_config_file(tmp_path: Path) -> None:
    text = """
    [prices."qwen3:32b"]
    input = 1
    output = 2.0
    cache_read = 0.1
    cache_write = 1.25

    [prices."local-*"]
    input = 0
    output = 0
    """
    found = settings_of(tmp_path, text)
    assert found.prices == {"qwen3:32b": FULL, "local-*": Price(0.0, 0.0, 0.0, 0.0)}
    assert found.warnings == ()


def test_a_name_with_dots_needs_no_quotes() -> None:
    table = {
        "gpt-4": {"1": {"input": 2, "output": 8}, "5": {"input": 1, "output": 1}},
        "x": {"input": 3, "output": 4},
    }
    assert list(read_prices(table, "config.toml")) == ["gpt-4.1", "gpt-4.5", "x"]


def test_the_cache_costs_what_input_costs_unless_it_is_said() -> None:
    [price] = read_prices({"m": {"input": 3, "output": 15}}, "c").values()
    assert price == Price(3.0, 15.0, 3.0, 3.0)
    assert price.cost(input=1, output=2, cache_read=3, cache_write=4) == pytest.approx(
        (3 + 30 + 9 + 12) / 1e6
    )


def test_the_exact_name_wins_then_the_longest_beginning() -> None:
    prices = {
        "*": Price(1, 1, 1, 1),
        "qwen*": Price(2, 2, 2, 2),
        "qwen3*": Price(3, 3, 3, 3),
        "qwen3": Price(4, 4, 4, 4),
    }
    assert price_of("other", prices) == prices["*"]
    assert price_of("qwen2", prices) == prices["qwen*"]
    assert price_of("qwen3:8b", prices) == prices["qwen3*"]
    assert price_of("qwen3", prices) == prices["qwen3"]
    assert price_of("other", {"qwen*": FULL}) is None
    assert price_of("qwen*", {"qwen": FULL}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices = 3", "prices in"),
        ("[prices]\nmodel = 3", "model under prices"),
        ('[prices."m"]\ninput = 1', "lacks output"),
        ('[prices."m"]\n', "lacks input and output"),
        ('[prices."m"]\ninput = -1\noutput = 1', "a number from 0 to 100000"),
        ('[prices."m"]\ninput = "3"\noutput = 1', "input of"),
        ('[prices."m"]\ninput = true\noutput = 1', "input of"),
        ('[prices."m"]\ninput = nan\noutput = 1', "input of"),
        ('[prices."m"]\ninput = inf\noutput = 1', "input of"),
        ('[prices."m"]\ninput = 1\noutput = 1\ncache_raed = 1', "did you mean cache_read?"),
        ('[prices."m"]\ninput = 1\noutput = 1\nzzz = 1', "it holds input, output, cache_read, cache_write."),
        ('[prices."a*b"]\ninput = 1\noutput = 1', "a * may stand at the end only"),
        ('[prices.""]\ninput = 1\noutput = 1', "must name a model"),
    ],
)
def test_slips_are_told_with_the_model_and_the_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, text)
    assert said in str(caught.value)
    assert "config.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "dollars"), [("2", 2.0), (" $2.50 ", 2.5), ("1,000", 1000.0), ("0", 0.0), ("1e3", 1000.0)]
)
def test_a_typed_budget(typed: str, dollars: float) -> None:
    assert read_budget(typed) == dollars


@pytest.mark.parametrize(
    "typed", ["", "x", "-1", "nan", "inf", "2 dollars", "10000000", "5,50", "1,5", "1,00,0", ",5"]
)
def test_what_is_no_budget(typed: str) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        read_budget(typed)
