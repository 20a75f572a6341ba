"""What the operator has written in tarazu.toml, checked: what is sold, by which backends, and how to serve it."""

from tarazu.service.configuration.backends import api_key
from tarazu.service.configuration.loading import Configuration, load
from tarazu.service.configuration.problems import ConfigurationError, Problem
from tarazu.service.configuration.schema import ServerSettings

__all__ = ["Configuration", "ConfigurationError", "Problem", "ServerSettings", "api_key", "load"]
