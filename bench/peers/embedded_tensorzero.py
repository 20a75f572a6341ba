"""Run the gateway that is in TensorZero's package for Python, by that package's interpreter.

    python embedded_tensorzero.py CONFIGURATION PORT FILE

The gateway chooses its port. Its address is written to the file, and then the given port takes connections.
"""

import signal
import socket
import sys
from pathlib import Path


def main(configuration: str, port: int, file: Path) -> None:
    """Start it, say where it is, and wait to be ended."""
    from openai import OpenAI  # noqa: PLC0415 - only in the environment of TensorZero
    from tensorzero import (  # type: ignore[import-not-found]  # noqa: PLC0415 - as above
        patch_openai_client,
    )

    client = patch_openai_client(OpenAI(api_key="none"), config_file=configuration, async_setup=False)
    file.write_text(str(client.base_url), "utf-8")
    with socket.create_server(("127.0.0.1", port)):
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
