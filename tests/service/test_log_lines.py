"""The writer of the log: whatever its reader does, nobody waits for it, and what is lost is told."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tarazu.service import log_lines
from tarazu.service.log_lines import LINE_BYTES_MAX, LINES_MAX, LineWriter
from tests.support.patience import PATIENCE_S

LINE = b"x" * 99 + b"\n"
MORE_THAN_A_PIPE_HOLDS = 5_000
AT_ONCE_S = 1.0
"""In which thousands of lines are taken; a writer that waited for its reader would never take them."""


def tell(dropped: int) -> Iterable[bytes]:
    """Say how many lines were dropped."""
    return [f"dropped {dropped}\n".encode()] if dropped else []


@contextmanager
def piped(own_lines: Callable[[int], Iterable[bytes]] = tell) -> Iterator[tuple[LineWriter, int]]:
    """Make a writer to a pipe, and give the end to read from."""
    reader, writer = os.pipe()
    try:
        yield LineWriter(writer, own_lines), reader
    finally:
        os.close(reader)
        os.close(writer)


def read(reader: int, until: bytes) -> list[bytes]:
    """Read lines up to one that begins so."""
    taken = b""
    while not any(line.startswith(until) for line in taken.splitlines()):
        taken += os.read(reader, 65_536)
    return taken.splitlines(keepends=True)


def test_nobody_waits_for_a_reader_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are taken, and dropped beyond the bound; the end is not waited for longer than its bound."""
    monkeypatch.setattr(log_lines, "DRAIN_S", 0.05)
    with piped() as (writer, reader):
        writer.start()
        begin_s = time.monotonic()
        for _ in range(LINES_MAX + MORE_THAN_A_PIPE_HOLDS):
            writer.write(LINE)
        took_s = time.monotonic() - begin_s
        assert took_s < AT_ONCE_S
        thread = writer._thread
        assert thread is not None
        writer.close()
        os.set_blocking(reader, False)
        while thread.is_alive():  # else it would write to whatever has the pipe's number next
            with suppress(BlockingIOError):
                os.read(reader, 65_536)
            thread.join(0.001)


def test_a_reader_that_comes_back_is_told_what_it_has_missed() -> None:
    """Each line is whole and was written, or is counted as dropped."""
    with piped() as (writer, reader):
        writer.start()
        sent = LINES_MAX + MORE_THAN_A_PIPE_HOLDS
        for _ in range(sent):
            writer.write(LINE)
        text, lines, dropped = b"", list[bytes](), 0
        while lines.count(LINE) + dropped < sent:
            text += os.read(reader, 65_536)
            lines = [line for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
            dropped = sum(int(line.split()[1]) for line in lines if line.startswith(b"dropped"))
        assert dropped > 0
        assert {line for line in lines if not line.startswith(b"dropped")} == {LINE}
        writer.close()


def test_many_threads_write_whole_lines() -> None:
    """Nothing is lost as long as it is read, and no line is cut by another."""
    threads, each = 4, 200
    with piped() as (writer, reader):
        writer.start()

        def write() -> None:
            for _ in range(each):
                writer.write(LINE)

        written = [threading.Thread(target=write) for _ in range(threads)]
        for thread in written:
            thread.start()
        taken = b""
        while len(taken) < threads * each * len(LINE):
            taken += os.read(reader, 65_536)
        assert set(taken.splitlines(keepends=True)) == {LINE}
        for thread in written:
            thread.join(PATIENCE_S)
        writer.close()


def test_two_writers_tear_no_line_of_each_other() -> None:
    """Whoever else writes to the pipe and however slowly it is read, each line comes out whole."""
    each = 1_000
    with piped() as (writer, reader):
        writers = [writer, LineWriter(writer._descriptor, tell)]
        for name, one in enumerate(writers):
            one.start()
            for number in range(each):
                one.write(json.dumps({"of": name, "number": number, "text": "x" * (number * 7 % 900)}).encode() + b"\n")
        text = b""
        while text.count(b"\n") < len(writers) * each:
            text += os.read(reader, 512)  # so that there is never much room
        lines = [json.loads(line) for line in text.splitlines()]
        for name, one in enumerate(writers):
            assert [line["number"] for line in lines if line["of"] == name] == list(range(each))
            one.close()


def test_each_write_is_of_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of no more than a pipe takes at once; also the writer's own lines, and one that is longer than any."""
    sizes = (1, 100, 2_500, LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, 3 * LINE_BYTES_MAX)
    written = list[bytes]()

    def write(_descriptor: int, text: bytes) -> int:
        written.append(text)
        return len(text)

    with piped(lambda _: [b"o" * 2_500 + b"\n"]) as (writer, _):
        monkeypatch.setattr(os, "write", write)
        for size in sizes:
            writer.write(b"a" * (size - 1) + b"\n")
        writer.start()
        for size in sizes * 20:
            writer.write(b"x" * (size - 1) + b"\n")
        writer.close()
    assert all(len(piece) <= LINE_BYTES_MAX and piece.endswith(b"\n") for piece in written)
    lengths = [len(line) for line in b"".join(written).splitlines(keepends=True) if line[:1] != b"o"]
    assert lengths == [min(size, LINE_BYTES_MAX) for size in sizes * 21]


def test_what_waits_is_written_at_the_end() -> None:
    """In the order in which it came; what comes later still is written at once."""
    with piped() as (writer, reader):
        writer.write(b"before\n")
        writer.start()
        for number in range(100):
            writer.write(b"%d\n" % number)
        writer.close()
        writer.write(b"after\n")
        expected = [b"before\n", *(b"%d\n" % number for number in range(100)), b"after\n"]
        assert os.read(reader, 65_536).splitlines(keepends=True) == expected


def test_before_its_thread_a_line_is_written_at_once_or_dropped() -> None:
    """A start waits for no reader either; the line that gets through tells."""
    with piped() as (writer, reader):
        for _ in range(MORE_THAN_A_PIPE_HOLDS):
            writer.write(LINE)
        taken = os.read(reader, 1_048_576)
        assert set(taken.splitlines(keepends=True)) == {LINE}
        writer.start()
        (told,) = read(reader, b"dropped")
        assert int(told.split()[1]) + taken.count(LINE) == MORE_THAN_A_PIPE_HOLDS
        writer.close()


def test_the_writer_tells_its_own_lines_where_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for them from time to time."""
    monkeypatch.setattr(log_lines, "TELL_S", 0.01)
    with piped(lambda _: [b"own\n"]) as (writer, reader):
        writer.start()
        assert read(reader, b"own")[0] == b"own\n"
        writer.close()


def test_a_full_disk_loses_lines_and_stops_nobody() -> None:
    """As a reader that has gone does."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        writer = LineWriter(full.fileno(), tell)
        writer.write(LINE)
        writer.start()
        writer.write(LINE)
        writer.close()
    reader, end = os.pipe()
    os.close(reader)
    writer = LineWriter(end, tell)
    writer.start()
    writer.write(LINE)
    writer.close()
    os.close(end)


def test_a_descriptor_that_does_not_wait_loses_nothing() -> None:
    """Whoever has the other end may have set it so."""
    with piped() as (writer, reader):
        os.set_blocking(writer._descriptor, False)
        writer.start()
        for _ in range(MORE_THAN_A_PIPE_HOLDS):
            writer.write(LINE)
        taken = b""
        while len(taken) < MORE_THAN_A_PIPE_HOLDS * len(LINE):
            taken += os.read(reader, 65_536)
        assert set(taken.splitlines(keepends=True)) == {LINE}
        writer.close()
