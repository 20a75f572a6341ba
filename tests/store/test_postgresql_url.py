"""The URL of a PostgreSQL database: what libpq takes is taken, and what is said of the rest repeats none of it."""

from contextlib import nullcontext, suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarazu.service.configuration.addresses import database_fault
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine
from tarazu.store.postgresql_url import CHOICES, postgresql_parameters, sqlalchemy_url

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        ("postgresql://u@h/d", {"user": "u", "host": "h", "dbname": "d"}),
        ("postgresql://u@h:5/d?sslmode=require", {"host": "h", "port": "5", "sslmode": "require"}),
        (
            "postgresql://u@h1:1,h2:2/d?target_session_attrs=read-write",
            {"host": "h1,h2", "port": "1,2", "target_session_attrs": "read-write"},
        ),
        ("postgresql://u@/d?host=h1,h2&port=1,2", {"host": "h1,h2", "port": "1,2"}),
        ("postgresql://u@h1,h2/d?port=5", {"host": "h1,h2", "port": "5,5"}),
        ("postgresql://u@h1,h2:5/d", {"host": "h1,h2", "port": ",5"}),
        ("postgresql://u@/d?hostaddr=1.2.3.4,1.2.3.5&port=1,2", {"hostaddr": "1.2.3.4,1.2.3.5", "port": "1,2"}),
        ("postgresql://u@/d?hostaddr=1.2.3.4,1.2.3.5&port=1", {"hostaddr": "1.2.3.4,1.2.3.5", "port": "1,1"}),
        ("postgresql://u@/d?port=1", {"port": "1"}),
        ("postgresql://u@[::1]:5/d", {"host": "::1", "port": "5"}),
        (f"postgresql://u:{SECRET}%40@h/d", {"password": f"{SECRET}@"}),
        ("postgresql://u@%2Frun%2Fpostgresql/d", {"host": "/run/postgresql"}),
    ],
)
def test_what_libpq_takes_arrives(url: str, parameters: dict[str, str]) -> None:
    """At the driver too, each by its name."""
    found = postgresql_parameters(url)
    assert parameters.items() <= found.items()
    engine = open_engine(url)
    _, options = engine.dialect.create_connect_args(sqlalchemy_url(found))
    assert {name: str(value) for name, value in options.items() if name != "context"} == found  # psycopg's own


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://h:abc/d", "host or port of the database is malformed"),
        ("postgresql://h:0x5/d", "host or port"),
        ("postgresql://h:70000/d", "host or port"),
        ("postgresql://h:5,g:abc/d", "host or port"),
        ("postgresql://[::1/d", "host or port"),
        ("postgresql://u@h1/d?port=1,2", "expected one port, or as many as there are hosts"),
        ("postgresql://u@/d?host=/sock&port=5432,5433,1", "expected one port"),
        ("postgresql://h1,h2/d?port=1,2,3", "expected one port"),
        ("postgresql://h1,h2,h3/d?port=1,2", "expected one port"),
        ("postgresql://u@/d?port=1,2", "expected one port"),
        ("postgresql://u@/d?hostaddr=1.2.3.4&port=1,2", "expected one port"),
        ("postgresql://h1,h2/d?hostaddr=1.2.3.4", "as many addresses in hostaddr"),
        ("postgresql://h/d?schema=public", "PostgreSQL knows no parameter schema"),
        ("postgresql://h/d?pgbouncer=true", "PostgreSQL knows no parameter pgbouncer"),
        ("postgresql://h/d?sslmod=require", "no parameter sslmod, did you mean sslmode"),
        ("postgresql://h/d?sslmode=requir", "expected one of disable, allow, prefer"),
        ("postgresql://h/d?target_session_attrs=rw", "expected one of any, read-write"),
        ("postgresql://u@h/dä", "ASCII"),
        ("postgresql://u@h/d b", "ASCII"),
        (f"postgresql://u:p@ss:{SECRET}@h:5/d", "%40 for @"),
        (f"postgresql://u:p@{SECRET}@h/d", "%40 for @"),
        (f"postgresql://u:5/{SECRET}@h/d", "%40 for @"),
        (f"postgresql://u:{SECRET}%zz@h/d", "a percent form in the URL of the database is malformed"),
        (f"postgresql://u:{SECRET}%@h/d", "a percent form"),
        (f"postgresql://u:{SECRET}%00@h/d", "a percent form"),
        (f"postgresql://u{SECRET}%4@h/d", "a percent form"),
        ("postgresql://h%/d", "a percent form"),
        ("postgresql://h/d?sslmode=%x", "a percent form"),
        (f"postgresql://u:x/{SECRET}?{SECRET}=1@h/d", "%40 for @"),
    ],
)
def test_what_it_does_not_take_is_told(url: str, reason: str) -> None:
    """By the check of the configuration as by whoever opens the books, and no piece of a password is in it."""
    fault = database_fault(url, may_hold_password=True)
    assert fault is not None
    assert reason in fault
    with pytest.raises(BooksUnavailableError) as refused:
        open_engine(url)
    for told in (fault, str(refused.value)):
        assert SECRET not in told


@pytest.mark.parametrize("name", CHOICES)
def test_a_parameter_of_a_few_words_takes_no_other(name: str) -> None:
    """Each that libpq takes is taken, and the others are told; libpq itself would say so when it connects."""
    for word in CHOICES[name]:
        assert postgresql_parameters(f"postgresql://u@h/d?{name}={word}")[name] == word
    for word in ("nonsense", "1", f"{CHOICES[name][0]}x", CHOICES[name][0].upper()):
        fault = database_fault(f"postgresql://u@h/d?{name}={word}")
        assert fault == f"expected one of {', '.join(CHOICES[name])} for {name}"


PIECES = st.sampled_from(
    [
        "u",
        ":",
        "@",
        "/",
        "?",
        "#",
        "%",
        "%40",
        "[",
        "]",
        ",",
        "=",
        "&",
        "5432",
        "::1",
        "host",
        "&host=a,b",
        "&port=1,2",
        "&hostaddr=1.2.3.4,::1",
        "port=1",
        "sslmode=",
        "\\",
        " ",
    ]
) | st.text(max_size=3)


@given(st.lists(PIECES, max_size=12).map("".join))
@example("")
@example("//")
@example("u:\x00")
@example("u@h/d?port=1,2")
def test_no_text_after_the_scheme_is_a_fault_of_ours(rest: str) -> None:
    """Whatever stands there, it is taken, or refused with a reason; what is taken makes an engine that may connect."""
    url = f"postgresql://{rest}"
    is_taken = database_fault(url, may_hold_password=True) is None
    with nullcontext() if is_taken else suppress(BooksUnavailableError):
        engine = open_engine(url)
        engine.dialect.create_connect_args(engine.url)
        engine.dispose()
