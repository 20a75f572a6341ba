"""Write lines so that nobody waits for their reader: through a bounded queue, by a thread of its own."""

import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue

LINES_MAX = 10_000
"""Lines that wait for the writer; some megabytes."""
LINE_BYTES_MAX = select.PIPE_BUF
"""So much is written to a pipe in one piece, whatever other processes write to it. No line is longer."""
TELL_S = 1.0
"""So often the writer looks for what it has to tell by itself, where no line comes."""
DRAIN_S = 2.0
"""At the end, for what still waits."""


class LineWriter:
    """Writes lines to the file `descriptor`.

    Until `start`, and after `close`, a line is written at once, or dropped where the reader has no room for it. In
    between it waits in a queue, and is dropped where that is full. `own_lines(dropped)` gives the writer's own lines:
    it is told how many lines were dropped since it was last asked.
    """

    def __init__(self, descriptor: int, own_lines: Callable[[int], Iterable[bytes]]) -> None:
        self._descriptor = descriptor
        self._own_lines = own_lines
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._dropped = 0
        self._counting = threading.RLock()  # which a signal handler may take again
        self._thread: threading.Thread | None = None
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def __repr__(self) -> str:
        return f"<LineWriter, {self._waiting.qsize()} waiting, {self._dropped} dropped>"

    def start(self) -> None:
        """Begin to write in a thread of its own, which what this process forks later would not have."""
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        thread.start()
        self._thread = thread

    def write(self, line: bytes) -> None:
        """Take a line, with its line feed. It waits for nothing, so it may be called in a signal handler."""
        if self._thread is None:
            self._write_at_once(line)
        elif self._waiting.qsize() < LINES_MAX:
            self._waiting.put(line)
        else:
            self._drop()

    def close(self) -> None:
        """Write what waits, for DRAIN_S at most; what is not written then is lost."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join(DRAIN_S)

    def _run(self) -> None:
        is_open = True
        while is_open:
            lines = self._take()
            is_open = None not in lines
            for piece in _pieces([*filter(None, lines), *self._told()]):
                self._write(piece)

    def _take(self) -> list[bytes | None]:
        """Take what waits, about as much as is written in one piece."""
        taken: list[bytes | None] = []
        size = 0
        try:
            while size < LINE_BYTES_MAX:
                line = self._waiting.get(timeout=TELL_S) if not taken else self._waiting.get_nowait()
                taken.append(line)
                if line is None:
                    break
                size += len(line)
        except Empty:
            pass
        return taken

    def _told(self) -> Iterable[bytes]:
        with self._counting:
            dropped, self._dropped = self._dropped, 0
        return self._own_lines(dropped)

    def _drop(self) -> None:
        with self._counting:
            self._dropped += 1

    def _write(self, piece: bytes) -> None:
        """Write it all, however long that takes. Where that fails, on a full disk or without a reader, it is lost.

        A pipe takes the whole of it at once, so that nothing of another process comes between.
        """
        while piece:
            self._poll.poll()  # the descriptor may be one that does not wait
            try:
                piece = piece[os.write(self._descriptor, piece) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    def _write_at_once(self, line: bytes) -> None:
        if self._poll.poll(0):  # a pipe has room for LINE_BYTES_MAX then
            self._write(_bounded(line))
        else:
            self._drop()


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Pack lines, each whole, into pieces of at most LINE_BYTES_MAX."""
    piece = b""
    for line in map(_bounded, lines):
        if piece and len(piece) + len(line) > LINE_BYTES_MAX:
            yield piece
            piece = b""
        piece += line
    if piece:
        yield piece


def _bounded(line: bytes) -> bytes:
    """Cut what is longer than any line of the log, and end it as one."""
    return line if len(line) <= LINE_BYTES_MAX else line[: LINE_BYTES_MAX - 1] + b"\n"
