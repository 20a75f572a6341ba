"""What the operator has written in tarazu.toml, checked: what is sold, by which backends, and how to serve it."""

from tarazu.service.configuration.loading import Configuration, configuration_path, load, looked_up
from tarazu.service.configuration.problems import ConfigurationError, Problem
from tarazu.service.configuration.schema import ServerSettings
from tarazu.service.configuration.secrets import read_secrets

__all__ = [
    "Configuration",
    "ConfigurationError",
    "Problem",
    "ServerSettings",
    "configuration_path",
    "load",
    "looked_up",
    "read_secrets",
]
