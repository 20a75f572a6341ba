"""Libraries that are slow to import, imported when a test first looks into them: collecting the tests needs none.

A type checker does not follow; who uses it imports the module under `TYPE_CHECKING` as well.
"""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def lazily(name: str) -> ModuleType:
    """Answer with a module that is imported when an attribute of it is first asked for."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None, name
    assert spec.loader is not None, name
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
