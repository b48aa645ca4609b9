import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError


def endpoints(listeners, advertised="", protocol_map=None, controllers=""):
    settings = {"listeners": listeners, "controller.listener.names": controllers}
    if advertised:
        settings["advertised.listeners"] = advertised
    if protocol_map is not None:
        settings["listener.security.protocol.map"] = protocol_map
    values = {key: BROKER_CONFIGS[key].parse(text) for key, text in settings.items()}
    return BrokerConfig(**{key.replace(".", "_"): value for key, value in values.items()}).endpoints


def plaintext(name, host, port, advertised=None):
    return Endpoint(name, host, port, "PLAINTEXT", advertised)


def test_the_default_is_this_machine_only():
    assert BrokerConfig().endpoints == (plaintext("PLAINTEXT", "localhost", 9092),)


def test_an_empty_host_is_every_interface():
    assert endpoints("PLAINTEXT://:9092") == (plaintext("PLAINTEXT", "", 9092),)


def test_ipv6_addresses_stand_in_brackets():
    assert endpoints("PLAINTEXT://[::1]:9092") == (plaintext("PLAINTEXT", "::1", 9092),)


def test_names_are_free_form_and_each_has_its_advertised_address():
    assert endpoints(
        "INSIDE://0.0.0.0:9093, tc-0://:9092",
        "INSIDE://broker:9093,TC-0://localhost:32768",
        "INSIDE:PLAINTEXT,TC-0:PLAINTEXT",
    ) == (
        plaintext("INSIDE", "0.0.0.0", 9093, ("broker", 9093)),
        plaintext("TC-0", "", 9092, ("localhost", 32768)),
    )


def test_not_every_listener_needs_an_advertised_address():
    both = endpoints(
        "PLAINTEXT://:9092,X://:9093", "X://example:9093", "PLAINTEXT:PLAINTEXT,X:PLAINTEXT"
    )
    assert [each.advertised for each in both] == [None, ("example", 9093)]


def test_controller_listeners_are_left_out():
    assert endpoints(
        "PLAINTEXT://:9092,CONTROLLER://:9093", "PLAINTEXT://localhost:9092", None, "CONTROLLER"
    ) == (plaintext("PLAINTEXT", "", 9092, ("localhost", 9092)),)


def test_any_free_port_may_be_asked_for_more_than_once():
    both = endpoints("A://127.0.0.1:0,B://127.0.0.1:0", "", "A:PLAINTEXT,B:PLAINTEXT")
    assert [each.port for each in both] == [0, 0]


def test_one_port_on_two_addresses():
    both = endpoints("A://127.0.0.1:9092,B://[::1]:9092", "", "A:PLAINTEXT,B:PLAINTEXT")
    assert len(both) == 2


@pytest.mark.parametrize(
    ("listeners", "advertised", "protocol_map", "expected"),
    [
        ("localhost:9092", "", None, "Value must be NAME://host:port"),
        ("PLAINTEXT://localhost", "", None, "Value must be NAME://host:port"),
        ("PLAINTEXT://localhost:70000", "", None, "Value must be NAME://host:port"),
        ("PLAINTEXT://:1,plaintext://:2", "", None, "Listener name PLAINTEXT is used twice"),
        ("A://:9092,B://:9092", "", "A:PLAINTEXT,B:PLAINTEXT", "Port 9092 is used twice"),
        ("A://x:9092,B://:9092", "", "A:PLAINTEXT,B:PLAINTEXT", "Port 9092 is used twice"),
        ("OUT://:9092", "", None, "Listener name OUT is missing in"),
        ("X://:9092", "", "X:TLS", "Value must be NAME:PROTOCOL,... with protocols PLAINTEXT"),
        ("X://:9092", "", "X=PLAINTEXT", "Value must be NAME:PROTOCOL"),
        ("PLAINTEXT://:9092", "OTHER://a:1", None, "OTHER is not one of the listeners"),
        ("PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:1", None, "0.0.0.0 is not an address"),
        ("PLAINTEXT://:9092", "PLAINTEXT://:1", None, "Host and port must be given"),
        ("PLAINTEXT://:9092", "PLAINTEXT://a:0", None, "Host and port must be given"),
        ("", "", None, "There must be one for clients"),
    ],
)
def test_impossible_listeners_are_rejected(listeners, advertised, protocol_map, expected):
    with pytest.raises(ConfigError) as caught:
        endpoints(listeners, advertised, protocol_map)
    assert expected in str(caught.value)


def test_a_controller_alone_is_refused():
    with pytest.raises(ConfigError, match="There must be one for clients"):
        endpoints("CONTROLLER://:9093", controllers="CONTROLLER")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("127.0.0.1:9644", ("127.0.0.1", 9644)),
        ("localhost:0", ("localhost", 0)),
        (":9644", ("", 9644)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
        ("[::1]:9644", ("::1", 9644)),
    ],
)
def test_the_address_of_the_http_port(text, address):
    assert load_config(overrides=[f"barnabas.http.listener={text}"]).config.http_address == address


@pytest.mark.parametrize(
    "text", ["9644", "localhost", "host:", "host:65536", "http://host:1", "a b:1", "::1:9644"]
)
def test_invalid_http_address_is_rejected(text):
    with pytest.raises(ConfigError, match="Value must be host:port, or empty"):
        load_config(overrides=[f"barnabas.http.listener={text}"])
