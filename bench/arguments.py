"""What is common to the commands of all benchmarks."""

import argparse


def parser_of(module: str, text: str | None) -> argparse.ArgumentParser:
    """Begin to read a benchmark's arguments. Its help is the text of its module, with the examples line by line."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
