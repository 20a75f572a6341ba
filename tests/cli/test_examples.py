"""The files in examples/: `tarazu check` finds nothing wrong with them, and each asks the server it is named for."""

import re
from pathlib import Path

import pytest

from tarazu.backends.http_backend import address_of
from tarazu.domain.catalogue import LOCAL
from tarazu.service.configuration import load
from tests.cli.commands import Commands

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.toml"))
COMPLETIONS = "/chat/completions"
ADDRESSES = {
    "anthropic": {"https://api.anthropic.com/v1/messages"},
    "azure-openai": {
        f"https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT{COMPLETIONS}?api-version=2024-10-21"
    },
    "deepseek": {f"https://api.deepseek.com/v1{COMPLETIONS}"},
    "embedded": set(),
    "gemini": {"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"},
    "groq": {f"https://api.groq.com/openai/v1{COMPLETIONS}"},
    "llama-cpp": {f"http://127.0.0.1:8081/v1{COMPLETIONS}"},
    "lm-studio": {f"http://127.0.0.1:1234/v1{COMPLETIONS}"},
    "mistral": {f"https://api.mistral.ai/v1{COMPLETIONS}"},
    "ollama": {f"http://127.0.0.1:11434/v1{COMPLETIONS}"},
    "openai": {f"https://api.openai.com/v1{COMPLETIONS}"},
    "openrouter": {f"https://openrouter.ai/api/v1{COMPLETIONS}"},
    "pool": {
        f"http://10.0.0.7:8000/v1{COMPLETIONS}",
        f"http://10.0.0.8:8000/v1{COMPLETIONS}",
        f"https://api.groq.com/openai/v1{COMPLETIONS}",
    },
    "tarazu": {f"https://api.openai.com/v1{COMPLETIONS}", f"http://127.0.0.1:8000/v1{COMPLETIONS}"},
    "vllm": {f"http://127.0.0.1:8000/v1{COMPLETIONS}"},
}


def variables(name: str) -> set[str]:
    """List the environment variables that an example says to set."""
    return set(re.findall(r"^#     export (\w+)=", (FOLDER / f"{name}.toml").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", EXAMPLES)
def test_check_finds_nothing_wrong(tarazu: Commands, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With the variables set that its first lines name, and no others; nothing to warn of either."""
    for variable in variables(name):
        monkeypatch.setenv(variable, "k")
    ran = tarazu("check", "--config", str(FOLDER / f"{name}.toml"))
    assert (ran.status, ran.err) == (0, "")
    assert "Warning" not in ran.out


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_asks_the_server_that_it_is_named_for(name: str) -> None:
    """Under this address, and no other."""
    catalogue = load(FOLDER / f"{name}.toml", dict.fromkeys(variables(name), "k")).catalogue
    specs = [spec for model in catalogue.models.values() for spec in model.backends]
    assert {address_of(spec) for spec in specs if spec.kind != LOCAL} == ADDRESSES[name]
