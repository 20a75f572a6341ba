"""`tarazu request`: what has become of one request, by the id that its caller was given."""

from typing import Annotated

import msgspec
from cyclopts import Parameter

from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.documents import RequestDocument
from tarazu.cli.options import AsJson, ConfigPath
from tarazu.cli.output import print_fields, print_json


def request(
    request_id: Annotated[
        str, Parameter(name="ID", help="The request's id, chatcmpl_…, or the X-Request-Id of its answer, req_….")
    ],
    /,
    *,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Show what has become of one request.

    Whose it was, what it cost, and how it ended.

    Requests that were refused before they cost anything are in the log alone.

    For example:

        tarazu request req_0V2yJ8kQm4tB7wXc1NfRpL2
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        document = RequestDocument.of(provisioning.request(request_id))
    if as_json:
        print_json(document)
    else:
        print_fields((name.replace("_", " "), value) for name, value in msgspec.structs.asdict(document).items())
