"""What an account is offered, whatever it can pay for just now."""

from tarazu.domain.accounts import Account
from tarazu.domain.catalogue import ANY_MODEL, Catalogue, Model


def offered_models(account: Account, catalogue: Catalogue) -> tuple[Model, ...]:
    """List the models of its plan, or of the pay-as-you-go section, in catalogue order."""
    return tuple(catalogue.usable_models(catalogue.offer(account.plan), (ANY_MODEL,)))
