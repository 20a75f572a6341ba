"""The switch with which operators stop all intake, and take requests again."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.domain.accounts import Intake
from tarazu.panel.acting import act
from tarazu.panel.forms import Form
from tarazu.panel.messages import told
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning_errors import ProvisioningError


class IntakePages:
    """The page of the switch."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show how it stands."""
        return await self._show(visit)

    async def stop(self, visit: Visit) -> Response:
        """Refuse all completions from now on."""
        try:
            retry_after_s = _retry_after_s(visit.form)
            await act(self._office, visit, lambda books: books.stop_intake(retry_after_s=retry_after_s))
        except ProvisioningError as error:
            return await self._show(visit, told(error, visit.formats))
        return visit.done("/intake", "intake-stopped")

    async def resume(self, visit: Visit) -> Response:
        """Take completions again."""
        await act(self._office, visit, lambda books: books.resume_intake())
        return visit.done("/intake", "intake-resumed")

    async def _show(self, visit: Visit, refusal: str | None = None) -> Response:
        intake = await act(self._office, visit, lambda books: books.intake())
        shown = visit.formats.digits(str(intake.retry_after_s if intake.stopped else Intake().retry_after_s))
        return visit.page(
            "operators/intake.html",
            HTTPStatus.OK if refusal is None else HTTPStatus.UNPROCESSABLE_ENTITY,
            intake=intake,
            retry_after_s=shown if refusal is None else visit.form.text("retry_after_s"),
            refusal=refusal,
        )


def _retry_after_s(form: Form) -> int:
    seconds = form.whole_number("retry time", "retry_after_s")
    if seconds is None:
        raise ProvisioningError("Write after how many seconds callers may try again.")
    return seconds
