"""Addresses of the network: which of them are one caller's."""

from ipaddress import IPv6Address, ip_address, ip_network

IPV6_PREFIX_BITS = 64
"""What one subscriber has of IPv6."""


def place_of(address: str, *, ipv6_bits: int = IPV6_PREFIX_BITS) -> str:
    """Write an address in one form, and for IPv6 the network that it is in: one caller has all of that."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((int(parsed), ipv6_bits), strict=False))
