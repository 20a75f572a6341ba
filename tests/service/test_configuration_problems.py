"""A section that is wrong: what is said, about which key, on which line."""

from pathlib import Path

import pytest

from tarazu.service.configuration import Problem
from tarazu.store.postgresql_url import PERCENT_ADVICE
from tests.support.configuration_files import MODEL, error_of, problems_of

MISSING = "is missing, expected"
COUNT = "expected an integer of at least 1, got"
IDS = 'a list of model ids, or ["*"] for all'
SOME_IDS = 'a list of one or more model ids, or ["*"] for all'
HIDDEN = "what stands there is not shown, since it may be a secret"


def test_the_text_names_file_line_key_and_reason(tmp_path: Path) -> None:
    """One problem is one line, in the form that compilers and editors know."""
    error = error_of(tmp_path, f'[plans.pro]\nmonthly_credits = "many"\n{MODEL}')
    reason = 'expected an integer of at least 0, got "many"'
    file = str(tmp_path / "tarazu.toml")
    assert error.problems == (Problem(file, 2, "plans.pro.monthly_credits", reason),)
    assert str(error) == f"{file}:2: plans.pro.monthly_credits: {reason}"


def test_all_problems_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One run of the check is enough to know everything that is to be put right."""
    text = """\
[server]
port = -1
prot = 1
[plans.pro]
monthly_credits = 1.5
models = ["remote", "smal"]
[models.small]
capabilities = ["chat", "streaming", "vison"]
[[models.small.backends]]
kind = "local"
weight = 0
[[models.small.backends]]
kind = "openai"
"""
    assert problems_of(tmp_path, text) == [
        "tarazu.toml:2: server.port: expected a port from 0 (any free one) to 65535, got -1",
        "tarazu.toml:3: server.prot: unknown setting, did you mean port?",
        "tarazu.toml:5: plans.pro.monthly_credits: expected an integer of at least 0, got 1.5",
        'tarazu.toml:6: plans.pro.models[0]: there is no model "remote", each model needs a section [models."ID"]',
        'tarazu.toml:6: plans.pro.models[1]: there is no model "smal", did you mean "small"?',
        "tarazu.toml:7: models.small.credits: is missing, expected an integer of at least 0",
        (
            'tarazu.toml:8: models.small.capabilities[1]: "streaming" is not available, since replies are sent whole; '
            "leave it out"
        ),
        (
            "tarazu.toml:8: models.small.capabilities[2]: "
            'expected one of chat, reasoning, vision, tools and json_output, got "vison"'
        ),
        f"tarazu.toml:11: models.small.backends[0].weight: {COUNT} 0",
        (
            f"tarazu.toml:12: models.small.backends[1].url: {MISSING} the address of the server's API, "
            'as in "https://api.openai.com/v1"'
        ),
        f"tarazu.toml:12: models.small.backends[1].model: {MISSING} the name by which the server knows the model",
    ]


DATABASE_EXPECTED = 'expected "sqlite:///PATH", the path of a file, or "postgresql://USER@HOST/DATABASE"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # what the file may hold
        ("[servr]", "1: servr: unknown section, did you mean server?"),
        (
            "[weather]",
            (
                "1: weather: unknown section, there are server, logs, database, operators, shop, billing, payg, keys, "
                "idempotency, plans and models"
            ),
        ),
        ("port = 80", "1: port: stands outside its section, move it under [server]"),
        ("server = 5", "1: server: expected a table, which begins with the line [server], got 5"),
        ("plans = []", "1: plans: expected tables, each headed [plans.NAME], got []"),
        (
            "[payg]\nshape = 1",
            "2: payg.shape: unknown setting, there are requests_per_minute and models",
        ),
        ("[payg]\nMODEL = []", "2: payg.MODEL: unknown setting, did you mean models?"),
        # server
        ("[server]\nport = 65536", "2: server.port: expected a port from 0 (any free one) to 65535, got 65536"),
        ('[server]\nport = "80"', '2: server.port: expected a port from 0 (any free one) to 65535, got "80"'),
        ("[server]\nworkers = 0", "2: server.workers: expected an integer from 1 to 256, got 0"),
        ("[server]\nmax_in_flight = 0", f"2: server.max_in_flight: {COUNT} 0"),
        ("[server]\nmax_in_flight = true", f"2: server.max_in_flight: {COUNT} true"),
        (
            "[server]\nmax_in_flight = 9_000_000_000",
            "2: server.max_in_flight: expected an integer of at most 1,000,000,000, got 9000000000",
        ),
        (
            '[server]\nhost = "http://localhost"',
            '2: server.host: expected a host name or an address without port, got "http://localhost"',
        ),
        (
            '[server]\npublic_url = "ai.example.com"',
            '2: server.public_url: expected an address that begins with "http://" or "https://"',
        ),
        (
            '[server]\npublic_url = "https://ai.example.com/api/v1/"',
            "2: server.public_url: leave /api/v1 out at the end of the address, the service adds it",
        ),
        (
            "[server]\npublic_url = 5",
            f"2: server.public_url: expected an http:// or https:// address; {HIDDEN}",
        ),
        (
            '[shop]\npayment_url = "pay.example.com"',
            '2: shop.payment_url: expected an address that begins with "http://" or "https://"',
        ),
        (
            '[shop]\npayment_url = "javascript:alert(1)"',
            '2: shop.payment_url: expected an address that begins with "http://" or "https://"',
        ),
        (
            '[shop]\npayment_url = "https://shop:secret@pay.example.com"',
            "2: shop.payment_url: expected an address without user and password, which would be a secret in this file",
        ),
        (
            '[shop]\ncontact = "help at example.com"',
            '2: shop.contact: expected an email address, or an address that begins with "https://"',
        ),
        (
            '[server]\ntrusted_proxies = ["10.0.0.1/8"]',
            '2: server.trusted_proxies[0]: expected an address or a network, as in "10.0.0.7" or "10.0.0.0/8"',
        ),
        (
            '[server]\ntrusted_proxies = "10.0.0.0/8"',
            (
                "2: server.trusted_proxies: expected a list of addresses and networks, "
                'as in ["10.0.0.0/8"], got "10.0.0.0/8"'
            ),
        ),
        (
            "[server]\nforwarded_for = -1",
            "2: server.forwarded_for: expected a number of proxies from 0 to 16, got -1",
        ),
        (
            '[server]\nhosts = ["ai.example.com", "https://ai.example.com"]',
            '2: server.hosts[1]: expected a host name, with a port or without, as in "ai.example.com:8443"',
        ),
        (
            '[server]\ncors_origins = ["https://app.example.com", "https://app.example.com/"]',
            (
                "2: server.cors_origins[1]: expected scheme and host in lower case, and no path, "
                'as in "https://app.example.com"'
            ),
        ),
        (
            '[server]\ncors_origins = ["*"]',
            (
                "2: server.cors_origins[0]: expected scheme and host in lower case, and no path, "
                'as in "https://app.example.com"'
            ),
        ),
        (
            '[server]\ncors_origins = ["https://app.example.com:443"]',
            "2: server.cors_origins[0]: leave out the port, which is the scheme's own: browsers do so too",
        ),
        # operators
        (
            "[operators]\nsecond_factor = true",
            '2: operators.second_factor: expected "optional" or "required", got true',
        ),
        # database
        (
            '[database]\nurl = "postgresql://tarazu:hunter2@db/tarazu"',
            (
                "2: database.url: a password must not stand in this file; leave it out and put it in the environment "
                "variable PGPASSWORD, in a file that PGPASSFILE names, or put the whole URL in TARAZU_DATABASE_URL"
            ),
        ),
        (
            '[database]\nurl = "postgresql://tarazu@db"',
            f"2: database.url: {DATABASE_EXPECTED}",
        ),
        (
            '[database]\nurl = "postgresql://tarazu@db:port/tarazu"',
            f"2: database.url: the host or port of the database is malformed; {PERCENT_ADVICE}",
        ),
        (
            '[database]\nurl = "mysql://x"',
            f"2: database.url: {DATABASE_EXPECTED}",
        ),
        (
            '[database]\nurl = "sqlite:///"',
            f"2: database.url: {DATABASE_EXPECTED}",
        ),
        (
            '[database]\nurl = "sqlite:///:memory:"',
            (
                '2: database.url: expected the path of a file, as in "sqlite:///tarazu.db": books in memory are lost '
                "with the process"
            ),
        ),
        # billing
        (
            '[billing]\ntimezone = "asia/teheran"',
            (
                '2: billing.timezone: expected the IANA name of a time zone, got "asia/teheran", '
                'did you mean "Asia/Tehran"?'
            ),
        ),
        (
            '[billing]\ntimezone = "../../etc/passwd"',
            '2: billing.timezone: expected the IANA name of a time zone, got "../../etc/passwd", as in "Asia/Tehran"',
        ),
        (
            '[billing]\ncurrency = "toman"',
            '2: billing.currency: expected a currency code of three capital letters, got "toman"',
        ),
        (
            '[billing]\ndefault_model = "smal"',
            '2: billing.default_model: there is no model "smal", did you mean "small"?',
        ),
        (
            '[billing]\ndefault_model = "*"',
            '2: billing.default_model: there is no model "*", each model needs a section [models."ID"]',
        ),
        # pay as you go
        ("[payg]\nrequests_per_minute = 0", f"2: payg.requests_per_minute: {COUNT} 0"),
        ('[payg]\nmodels = "*"', f'2: payg.models: expected {IDS}, got "*"'),
        ('[payg]\nmodels = ["small", 1, []]', f'2: payg.models: expected {IDS}, got ["small", 1, a list]'),
        (
            '[payg]\nmodels = [\n"small",\n"big"]',
            '2: payg.models[1]: there is no model "big", each model needs a section [models."ID"]',
        ),
        # plans
        ("[plans.pro]", f"1: plans.pro.monthly_credits: {MISSING} an integer of at least 0"),
        ("plans.pro = 1", "1: plans.pro: expected a table, which begins with the line [plans.pro], got 1"),
        (
            "[plans.none]\nmonthly_credits = 1",
            '1: plans.none: no plan may be called "none": GET /usage says so of an account without one',
        ),
        (
            '[plans."no good"]\nmonthly_credits = 1',
            '1: plans."no good": expected a plan name of 1 to 64 letters, digits and . - _ as in [plans.pro]',
        ),
        (
            "[plans.pro]\nmonthly_credits = 1\nrequests_per_minute = 0",
            f"3: plans.pro.requests_per_minute: {COUNT} 0",
        ),
        (
            "[plans.pro]\nmonthly_credits = 1\nmodels = []",
            f"3: plans.pro.models: expected {SOME_IDS}, got []",
        ),
        (
            "[plans.pro.v2]\nmonthly_credits = 1",
            '1: plans.pro.v2: unknown setting; a name with a dot in it is written in quotes, as in [plans."pro.v2"]',
        ),
        (
            "[plans.pro]\nmonthly_credits = 2_000_000_000_000",
            "2: plans.pro.monthly_credits: expected an integer of at most 1,000,000,000,000, got 2000000000000",
        ),
        (
            "[plans.pro]\nmonthly_credits = 0xffffffffffffffffffffffff",
            "2: plans.pro.monthly_credits: expected an integer of at most 1,000,000,000,000, got a huge integer",
        ),
        (
            "[plans.pro]\nmonthly_credits = 1979-05-27",
            "2: plans.pro.monthly_credits: expected an integer of at least 0, got a date or time",
        ),
    ],
)
def test_a_setting_that_is_wrong_is_told_with_what_is_expected(tmp_path: Path, text: str, problem: str) -> None:
    """Each kind of problem outside of the models has its own sentence, which says what to do next."""
    assert problems_of(tmp_path, f"{text}\n{MODEL}") == [f"tarazu.toml:{problem}"]


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    """What an error repeats of the file is bounded."""
    (problem,) = problems_of(tmp_path, f'[server]\nport = "{"x" * 10_000}"\n{MODEL}')
    assert problem.endswith(f'got "{"x" * 59}…"')


def test_characters_that_steer_a_terminal_are_escaped(tmp_path: Path) -> None:
    """What an error repeats of the file cannot break its line nor colour the screen."""
    text = f'"\x9b1m\u2028" = 1\n[server]\nport = "\\u001b[1m\x9b\u2029"\n{MODEL}'
    assert problems_of(tmp_path, text) == [
        (
            'tarazu.toml:1: "\\u009b1m\\u2028": unknown section, '
            "there are server, logs, database, operators, shop, billing, payg, keys, idempotency, plans and models"
        ),
        ('tarazu.toml:3: server.port: expected a port from 0 (any free one) to 65535, got "\\u001b[1m\\u009b\\u2029"'),
    ]
