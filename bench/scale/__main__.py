"""Measure what grows, and what does not, with workers and services, with accounts, and with the size of the books.

    python -m bench.scale
    python -m bench.scale --quick
    python -m bench.scale --only shares

A request is a completion over HTTP from a model server that answers at once, asked for by wrk over 64 connections. One
worker has core 0 for itself; several share both cores with PostgreSQL, the model server and wrk, which take a part of
the second. In the group `shares` each worker is held to a small part of a core by a cgroup, and asked over 64
connections of its own, so that the machine is not what bounds them together. Each cell has new books, on a database
server of its own; the cells are measured one after the other, and after each the books are audited.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace
from rich.console import Console

from bench.arguments import parser_of
from bench.figures import machine
from bench.peers import nginx, wrk
from bench.scale import shares
from bench.scale.cells import GROUPS, QUICK, STORES, Cell, Sizes, cells
from bench.scale.measuring import Measured, measure
from bench.scale.report import report

progress = Console(stderr=True)


def run(chosen: Sequence[Cell], *, seconds: int) -> str:
    """Measure the cells one after the other. Shares are left out, and it is said, where nobody can give them."""
    measured: dict[Cell, Measured] = {}
    for number, cell in enumerate(_possible(chosen)):
        progress.print(f"{number + 1} of {len(chosen)}: {cell} ...")
        with TemporaryDirectory(prefix="tarazu-bench-") as name:
            measured[cell] = measure(cell, Path(name), seconds)
        progress.print(f"    {measured[cell].per_second:,.0f} requests/s")
    return report(measured, f"{machine()}; nginx {nginx.version()}; {wrk.version()}")


def _possible(chosen: Sequence[Cell]) -> Sequence[Cell]:
    try:
        shares.assert_possible()
    except shares.NoSharesError as error:
        left = [cell for cell in chosen if cell.share is None]
        progress.print(f"{len(chosen) - len(left)} cells in which each worker has a share are left out: {error}")
        return left
    return chosen


def main() -> None:
    """Measure as the arguments say; print the report, and write it where it is asked for."""
    parser = parser_of("bench.scale", __doc__)
    parser.add_argument("--quick", action="store_true", help="small books, two seconds for each cell")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES, metavar="STORE")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--accounts", nargs="+", type=int, help="in accounts and in shares", metavar="NUMBER")
    parser.add_argument("--requests", nargs="+", type=int, help="in the books in books", metavar="NUMBER")
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else Sizes()
    if arguments.accounts:
        sizes = replace(sizes, accounts=arguments.accounts, shared_accounts=arguments.accounts)
    if arguments.requests:
        sizes = replace(sizes, requests=arguments.requests)
    text = run(cells(arguments.stores, arguments.only, sizes), seconds=sizes.seconds)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
