"""Libraries that are slow to import, imported when a test first looks into them: collecting the tests needs none.

A type checker does not follow; the module that uses one imports it under `TYPE_CHECKING` as well.
"""

from importlib import import_module
from types import ModuleType
from typing import Any

SLOW = {"anthropic", "fastapi", "google.genai", "openai", "schemathesis"}
"""None of these is imported before the first test runs; llmock's server is made with FastAPI."""


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_mock_name":  # pytest asks for these, in search of tests and fixtures
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def lazily(name: str) -> ModuleType:
    """Answer with what stands for a module, and imports it when an attribute of it is first asked for."""
    return _Lazy(name)
