"""Why an act of an operator or an account holder cannot be done."""


class ProvisioningError(Exception):
    """The act cannot be done; nothing was changed. The message says why and what to do.

    `text` is the message without its `values`, for catalogues of other languages. `hint` names the command that helps
    somebody at a terminal further, `member` which of the values that were given it is about, as programs name it.
    """

    def __init__(self, text: str, /, *, hint: str | None = None, member: str | None = None, **values: object) -> None:
        super().__init__(text.format(**values))
        self.text = text
        self.values = values
        self.hint = hint
        self.member = member


class NotThereError(ProvisioningError):
    """What the act is about is not in the books, or not in that account."""


class ConflictError(ProvisioningError):
    """What the act asks for contradicts what is in the books."""
