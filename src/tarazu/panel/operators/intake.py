"""The switch with which operators stop all intake, and take requests again."""

from starlette.responses import Response

from tarazu.domain.accounts import Intake
from tarazu.panel.acting import act
from tarazu.panel.forms import Form
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning_errors import ProvisioningError


class IntakePages:
    """The page of the switch."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show how it stands."""
        intake = await act(self._office, visit, lambda books: books.intake())
        retry_after_s = visit.formats.digits(str((intake if intake.stopped else Intake()).retry_after_s))
        return visit.page("operators/intake.html", intake=intake, retry_after_s=retry_after_s)

    async def stop(self, visit: Visit) -> Response:
        """Refuse all completions from now on."""
        retry_after_s = _retry_after_s(visit.form)
        await act(self._office, visit, lambda books: books.stop_intake(retry_after_s=retry_after_s))
        return visit.done("/intake", "intake-stopped")

    async def resume(self, visit: Visit) -> Response:
        """Take completions again."""
        await act(self._office, visit, lambda books: books.resume_intake())
        return visit.done("/intake", "intake-resumed")


def _retry_after_s(form: Form) -> int:
    seconds = form.whole_number("retry time", "retry_after_s")
    if seconds is None:
        raise ProvisioningError("Write after how many seconds callers may try again.")
    return seconds
