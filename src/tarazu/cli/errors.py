"""What a command says when it cannot be done."""

EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """The command cannot be done; a person is told why, and what to do next."""

    exit_status = EXIT_FAILED

    def __init__(self, problem: str, advice: str | None = None) -> None:
        super().__init__(problem, advice)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return self.problem if self.advice is None else f"{self.problem}\n{self.advice}"


class UsageError(CommandError):
    """The command was not typed as it is meant to be."""

    exit_status = EXIT_USAGE
