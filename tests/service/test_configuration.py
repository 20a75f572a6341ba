"""A configuration that is right: where it is found, what it becomes, and the backends' secrets."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.domain.bounds import Bounds
from tarazu.domain.catalogue import BackendSpec, Capabilities, Model, Offer, Plan, Shop
from tarazu.service.configuration import ServerSettings, load
from tests.support.configuration_files import FILE_NAME, MODEL, load_text, problems_of

WHOLE = """\
[server]
host = "::1"
port = 0
workers = 4
public_url = "https://ai.example.com/"
max_in_flight = 7
max_in_flight_per_account = 3
connections_per_address = 9
trusted_proxies = ["10.0.0.0/8", "2001:db8::7"]
forwarded_for = 2
hosts = ["ai.example.org", "localhost:9000"]
cors_origins = ["https://app.example.com", "http://localhost:5173"]

[operators]
second_factor = "required"

[shop]
name = "Acme"
payment_url = "https://pay.example.com/top-up?shop=7"
contact = "help@example.com"

[database]
url = "sqlite:////var/lib/tarazu/books.db"

[billing]
timezone = "Asia/Tehran"
currency = "EUR"
abandoned = "free"
abandoned_per_hour = 4
default_model = "acme/fast:v1.5"

[payg]
requests_per_minute = 3
models = ["acme/fast:v1.5"]

[keys]
per_account = 11
per_hour = 12

[idempotency]
per_account_mib = 13
total_mib = 14

[plans.pro]
monthly_credits = 1_000
requests_per_minute = 2
models = ["plain", "acme/fast:v1.5"]

[models.plain]
credits = 0
[[models.plain.backends]]
kind = "local"

[models."acme/fast:v1.5"]
display_name = "Fast"
provider = "acme-labs"
description = "Quick."
credits = 5
payg_amount = 50
capabilities = ["reasoning", "json_output"]
max_output_tokens = 100
timeout_s = 12.5
[[models."acme/fast:v1.5".backends]]
kind = "openai"
url = "http://127.0.0.1:9000/v1/"
model = "fast-1.5"
api_key_env = "ACME_KEY"
weight = 3
priority = 1
max_concurrency = 8
[[models."acme/fast:v1.5".backends]]
kind = "local"
model = "weights/fast.gguf"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_setting_arrives_where_the_service_reads_it(folder: Path) -> None:
    """A file with every setting becomes exactly the settings and the catalogue that it spells out."""
    weights = folder / "weights" / "fast.gguf"
    weights.parent.mkdir()
    weights.touch()
    configuration = load_text(folder, WHOLE, {"ACME_KEY": "k"})
    catalogue = configuration.catalogue
    assert configuration.path == folder / FILE_NAME
    assert configuration.server == ServerSettings(
        host="::1",
        port=0,
        workers=4,
        public_url="https://ai.example.com",
        max_in_flight=7,
        max_in_flight_per_account=3,
        connections_per_address=9,
        trusted_proxies=("10.0.0.0/8", "2001:db8::7"),
        forwarded_for=2,
        hosts=("ai.example.org", "localhost:9000"),
        cors_origins=("https://app.example.com", "http://localhost:5173"),
    )
    assert configuration.operators.need_second_factor
    assert configuration.database_url == "sqlite:////var/lib/tarazu/books.db"
    assert catalogue.zone == ZoneInfo("Asia/Tehran")
    assert catalogue.shop == Shop(
        name="Acme", payment_url="https://pay.example.com/top-up?shop=7", contact="help@example.com"
    )
    assert catalogue.currency == "EUR"
    assert catalogue.abandoned_per_hour == 4
    assert catalogue.default_model == "acme/fast:v1.5"
    assert catalogue.payg == Offer(models=("acme/fast:v1.5",), requests_per_minute=3)
    assert catalogue.bounds == Bounds(
        keys=11, new_keys_hourly=12, account_reply_bytes=13 * 1024 * 1024, reply_bytes=14 * 1024 * 1024
    )
    assert catalogue.plans == {
        "pro": Plan(name="pro", monthly_credits=1_000, requests_per_minute=2, models=("plain", "acme/fast:v1.5"))
    }
    assert catalogue.models["acme/fast:v1.5"] == Model(
        id="acme/fast:v1.5",
        display_name="Fast",
        provider="acme-labs",
        description="Quick.",
        credits=5,
        payg_amount=50,
        capabilities=Capabilities(reasoning=True, json_output=True),
        max_output_tokens=100,
        timeout_s=12.5,
        backends=(
            BackendSpec(
                kind="openai",
                url="http://127.0.0.1:9000/v1",
                model="fast-1.5",
                api_key_env="ACME_KEY",
                weight=3,
                priority=1,
                max_concurrency=8,
            ),
            BackendSpec(kind="local", model=str(weights)),
        ),
    )


def test_the_models_stay_in_the_order_of_the_file(folder: Path) -> None:
    """Catalogue order is file order; it decides the default model."""
    (folder / "weights").mkdir()
    (folder / "weights" / "fast.gguf").touch()
    assert list(load_text(folder, WHOLE, {"ACME_KEY": "k"}).catalogue.models) == ["plain", "acme/fast:v1.5"]


def test_one_model_is_enough(folder: Path) -> None:
    """Everything but a model's price and backend has a default."""
    configuration = load_text(folder, MODEL)
    catalogue = configuration.catalogue
    assert configuration.server == ServerSettings(
        host="127.0.0.1",
        port=8080,
        workers=1,
        public_url=None,
        max_in_flight=512,
        max_in_flight_per_account=None,
        connections_per_address=512,
        trusted_proxies=("127.0.0.0/8", "::1/128"),
        forwarded_for=1,
        hosts=(),
        cors_origins=(),
    )
    assert not configuration.operators.need_second_factor
    assert catalogue.shop == Shop()
    assert configuration.database_url == "sqlite:///tarazu.db"
    assert (catalogue.zone, catalogue.currency, catalogue.default_model) == (ZoneInfo("UTC"), "IRT", None)
    assert catalogue.payg == Offer(models=("*",), requests_per_minute=20)
    assert catalogue.plans == {}
    assert catalogue.models == {
        "small": Model(
            id="small",
            display_name="small",
            provider="tarazu",
            description="",
            credits=1,
            payg_amount=0,
            capabilities=Capabilities(chat=True),
            max_output_tokens=None,
            timeout_s=60,
            backends=(BackendSpec(kind="local"),),
        )
    }


def test_the_provider_is_the_first_part_of_the_id(folder: Path) -> None:
    """`provider` defaults to what stands before the first slash."""
    model = load_text(folder, MODEL.replace("small", '"acme/lab/one"')).catalogue.models["acme/lab/one"]
    assert (model.provider, model.display_name) == ("acme", "acme/lab/one")


def test_a_plan_needs_only_its_quota(folder: Path) -> None:
    """A plan's other settings have defaults."""
    plans = load_text(folder, "[plans.free]\nmonthly_credits = 0\n" + MODEL).catalogue.plans
    assert plans["free"] == Plan(name="free", monthly_credits=0, requests_per_minute=60, models=("*",))


def test_the_path_that_is_given_goes_first(folder: Path) -> None:
    """`path` is read whatever the environment names and whatever lies in the current folder."""
    given_path = folder / "given.toml"
    given_path.write_text(MODEL)
    (folder / FILE_NAME).write_text("wrong")
    assert load(given_path, {"TARAZU_CONFIG": "missing.toml"}).path == given_path


def test_then_the_environment_names_the_file(folder: Path) -> None:
    """$TARAZU_CONFIG is read before ./tarazu.toml."""
    (folder / "named.toml").write_text(MODEL)
    (folder / FILE_NAME).write_text("wrong")
    assert load(environ={"TARAZU_CONFIG": "named.toml"}).path == Path("named.toml")


@pytest.mark.usefixtures("folder")
def test_then_the_file_in_the_current_folder_is_read() -> None:
    """./tarazu.toml is read without being named; an empty variable names nothing."""
    Path(FILE_NAME).write_text(MODEL)
    assert load(environ={"TARAZU_CONFIG": ""}).path == Path(FILE_NAME)


@pytest.mark.usefixtures("folder")
def test_without_a_file_the_demo_catalogue_is_in_force() -> None:
    """The demo sells the embedded model, needs no secret, and its first plan is `free`."""
    configuration = load(environ={})
    catalogue = configuration.catalogue
    assert configuration.path is None
    assert catalogue.default_model == "tarazu/smollm2"
    assert catalogue.models["tarazu/smollm2"].backends == (BackendSpec(kind="local"),)
    assert catalogue.models["tarazu/smollm2"].credits == 1
    assert list(catalogue.plans) == ["free", "pro"]
    assert catalogue.plans["free"] == Plan(name="free", monthly_credits=1_000, requests_per_minute=60, models=("*",))


@pytest.mark.parametrize("lines", ['abandoned = "charged"', 'abandoned = "charged"\nabandoned_per_hour = 5'])
def test_where_abandoned_requests_are_charged_none_is_free(folder: Path, lines: str) -> None:
    """Whatever the bound says."""
    assert load_text(folder, f"{MODEL}\n[billing]\n{lines}\n").catalogue.abandoned_per_hour == 0


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem(folder: Path) -> None:
    """Files from editors on other systems load."""
    path = folder / FILE_NAME
    path.write_bytes(b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode())
    assert list(load(path, {}).catalogue.models) == ["small"]


def test_backends_may_stand_in_one_line(folder: Path) -> None:
    """TOML's other ways to write the same tables mean the same."""
    inline = 'models.small = { credits = 1, backends = [{ kind = "local" }] }\n'
    assert load_text(folder, inline).catalogue == load_text(folder, MODEL).catalogue


@pytest.mark.parametrize(
    ("setting", "least", "most"),
    [
        ("[server]\nport = {}", 0, 65_535),
        ("[server]\nworkers = {}", 1, 256),
        ("[server]\nmax_in_flight = {}", 1, 10**9),
        ("[server]\nmax_in_flight_per_account = {}", 1, 10**9),
        ("[server]\nconnections_per_address = {}", 1, 10**9),
        ("[billing]\nabandoned_per_hour = {}", 1, 10**9),
        ("[payg]\nrequests_per_minute = {}", 1, 10**9),
        ("[plans.a]\nmonthly_credits = {}", 0, 10**12),
        ("[plans.a]\nmonthly_credits = 1\nrequests_per_minute = {}", 1, 10**9),
        ("[models.b]\nbackends = [{{kind = 'local'}}]\ncredits = {}", 0, 10**12),
        ("[models.b]\nbackends = [{{kind = 'local'}}]\ncredits = 0\npayg_amount = {}", 0, 10**12),
        ("[models.b]\nbackends = [{{kind = 'local'}}]\ncredits = 0\nmax_output_tokens = {}", 1, 10**9),
        ("[models.b]\ncredits = 0\nbackends = [{{kind = 'local', weight = {}}}]", 1, 10**9),
        ("[models.b]\ncredits = 0\nbackends = [{{kind = 'local', priority = {}}}]", 0, 10**9),
        ("[models.b]\ncredits = 0\nbackends = [{{kind = 'local', max_concurrency = {}}}]", 1, 10**9),
    ],
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_number_is_taken_exactly_within_its_bounds(
    tmp_path: Path, setting: str, least: int, most: int, data: st.DataObject
) -> None:
    """Both bounds belong to the range, and one step outside of it is refused."""
    inside = data.draw(st.sampled_from([least, most]) | st.integers(least, most))
    outside = data.draw(
        st.sampled_from([least - 1, most + 1]) | st.integers(max_value=least - 1) | st.integers(min_value=most + 1)
    )
    load_text(tmp_path, f"{setting.format(inside)}\n{MODEL}")
    (problem,) = problems_of(tmp_path, f"{setting.format(outside)}\n{MODEL}")
    assert ": expected " in problem
