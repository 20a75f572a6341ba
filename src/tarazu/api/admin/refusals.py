"""What the errors of acts are answered with."""

from tarazu.api.admin.errors import AdminError, AdminRefusal, AdminRefusedError, MemberDetails
from tarazu.service.auditing import AuditRunningError
from tarazu.service.back_office import BackOfficeFullError
from tarazu.service.completion import BOOKS_RETRY_AFTER_S, BUSY_RETRY_AFTER_S
from tarazu.service.provisioning_errors import ConflictError, NotThereError, ProvisioningError
from tarazu.store.availability import BooksUnavailableError

REFUSED = (AdminRefusedError, ProvisioningError, AuditRunningError, BooksUnavailableError)
"""The errors that `refusal_of` knows; every other one is a fault of ours."""


def refusal_of(error: Exception) -> AdminRefusal:
    """Turn one of the errors REFUSED into the answer."""
    match error:
        case AdminRefusedError():
            return error.refusal
        case NotThereError():
            return AdminRefusal(error=AdminError.NOT_THERE, message=str(error))
        case ConflictError():
            return AdminRefusal(error=AdminError.CONFLICT, message=str(error), details=MemberDetails(error.member))
        case ProvisioningError():
            return AdminRefusal(error=AdminError.INVALID_VALUE, message=str(error), details=MemberDetails(error.member))
        case AuditRunningError():
            return AdminRefusal(error=AdminError.AUDIT_RUNNING)
        case BackOfficeFullError():
            return AdminRefusal(error=AdminError.UNAVAILABLE, retry_after_s=BUSY_RETRY_AFTER_S)
        case _:
            assert isinstance(error, BooksUnavailableError)  # its words may tell of the database; ours do not
            return AdminRefusal(error=AdminError.UNAVAILABLE, retry_after_s=BOOKS_RETRY_AFTER_S)
