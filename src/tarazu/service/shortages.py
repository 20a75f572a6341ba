"""What the system gives no more of: processes and threads, open files, memory."""

import errno

NO_THREAD = "can't start new thread"
"""What Python says, of no kind of its own."""
NO_PROCESSES = (
    "The system lets this user begin no more processes and threads. Raise the limit (`ulimit -u`, or TasksMax= of a "
    "systemd unit), or end others."
)
NO_FILES = (
    "The system lets this process open no more files. Raise the limit (`ulimit -n`, or LimitNOFILE= of a systemd unit)."
)
NO_FILES_AT_ALL = "The system has no room for more open files. Raise `sysctl fs.file-max`, or end other processes."
NO_MEMORY = "There is not enough memory. End other processes, or give the machine or the container more of it."
OF_SYSTEM = {
    errno.EAGAIN: NO_PROCESSES,
    errno.EMFILE: NO_FILES,
    errno.ENFILE: NO_FILES_AT_ALL,
    errno.ENOMEM: NO_MEMORY,
}


def shortage(error: BaseException) -> str | None:
    """Tell what there is no more of, and what to do; None where an error is about another thing."""
    match error:
        case MemoryError():
            return NO_MEMORY
        case RuntimeError() if str(error) == NO_THREAD:
            return NO_PROCESSES
        case OSError():
            return OF_SYSTEM.get(error.errno or 0)
        case _:
            return None
