"""Login modules: the place of a listener's configuration, and the refusal of unknown ones."""

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.sasl.jaas_modules import MODULES
from barnabas.broker.security.sasl.logins import Logins
from barnabas.protocol.sasl.exchange import SaslFailed
from barnabas.testing import Broker
from tests.broker.security.wire import Wire

PLAIN, SCRAM = MODULES["PLAIN"], MODULES["SCRAM-SHA-256"]
LISTENERS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,EXT.A://127.0.0.1:0",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,EXT.A:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
}


def logins(tmp_path, text, **settings):
    path = tmp_path / "jaas.conf"
    if text is not None:
        path.write_text(text)
    given = {**LISTENERS, **settings}
    environment = {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={path}"}
    config = load_config([], environment, [f"{k}={v}" for k, v in given.items()]).config
    return config, Logins(config)


def lets_in(tmp_path, text, listener, user, **settings):
    config, found = logins(tmp_path, text, **settings)
    begin = found.mechanisms_of(config.for_listener(listener), listener)["PLAIN"]
    try:
        begin(None).step(f"\0{user}\0secret".encode())
    except SaslFailed:
        return False
    return True


def section(name, *users, module=PLAIN):
    options = " ".join(f'user_{user}="secret"' for user in users)
    return f"{name} {{ {module} required {options}; }};\n"


def test_a_section_of_the_listener_comes_before_that_of_all(tmp_path):
    text = section("KafkaServer", "alice") + section("ext.a.KafkaServer", "bob")
    assert lets_in(tmp_path, text, "SASL_PLAINTEXT", "alice")
    assert not lets_in(tmp_path, text, "SASL_PLAINTEXT", "bob")
    assert lets_in(tmp_path, text, "EXT.A", "bob")
    assert not lets_in(tmp_path, text, "EXT.A", "alice")


def test_a_setting_of_the_listener_comes_before_the_file(tmp_path):
    key = "listener.name.ext.a.plain.sasl.jaas.config"
    text = section("ext.a.KafkaServer", "bob")
    settings = {key: f"{PLAIN} required user_carol=secret;"}
    assert lets_in(tmp_path, text, "EXT.A", "carol", **settings)
    assert not lets_in(tmp_path, text, "EXT.A", "bob", **settings)


def test_a_section_may_have_several_modules_the_first_option_counting(tmp_path):
    text = (
        "KafkaServer {\n"
        f'  {SCRAM} required username="admin" password="a";\n'
        f'  {PLAIN} required user_alice="secret" user_bob="secret"; // one\n'
        f'  {PLAIN} sufficient user_alice="other" user_carol="secret"; /* another */\n'
        "};\nKafkaClient { com.example.Whatever required; };"
    )
    for user in ("alice", "bob", "carol"):
        assert lets_in(tmp_path, text, "SASL_PLAINTEXT", user)
    assert not lets_in(tmp_path, text, "SASL_PLAINTEXT", "admin")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "jaas.conf: No such file or directory (barnabas.sasl.jaas.file)"),
        ("KafkaServer { hidden", "a control flag is missing (barnabas.sasl.jaas.file)"),
        (section("KafkaClient", "hidden"), "so {path} (barnabas.sasl.jaas.file) must name its"),
        (section("KafkaServer", "hidden", module=SCRAM), "must name its users"),
        (section("KafkaServer"), "no user is set"),
        (
            section("KafkaServer", module="com.sun.security.auth.module.Krb5LoginModule"),
            "section KafkaServer: Krb5LoginModule: Kerberos (GSSAPI) is not available",
        ),
        (
            section("KafkaServer", "a") + section("sasl_plaintext.KafkaServer", module="a.Ldap"),
            (
                "section sasl_plaintext.KafkaServer: no Java class can be loaded; known are "
                "OAuthBearerLoginModule, PlainLoginModule, ScramLoginModule"
            ),
        ),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start(tmp_path, text, problem):
    config, found = logins(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        found.mechanisms_of(config.for_listener("SASL_PLAINTEXT"), "SASL_PLAINTEXT")
    assert problem.replace("{path}", str(tmp_path / "jaas.conf")) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_latin_is_refused(tmp_path):
    (tmp_path / "jaas.conf").write_bytes(b"KafkaServer { \xff")
    config, found = logins(tmp_path, None)
    with pytest.raises(ConfigError, match="not UTF-8"):
        found.mechanisms_of(config.for_listener("EXT.A"), "EXT.A")


@pytest.mark.parametrize(
    "module",
    [
        "com.sun.security.auth.module.JndiLoginModule",  # CVE-2023-25194
        "com.sun.security.auth.module.LdapLoginModule",  # CVE-2025-27818
        "com.sun.security.auth.module.Krb5LoginModule",
        "org.apache.kafka.common.security.scram.ScramLoginModule",
    ],
)
def test_a_setting_has_the_module_of_its_mechanism(module):
    key = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    settings = {**LISTENERS, key: f'{module} required user_a="hidden!";'}
    config = load_config(overrides=[f"{k}={v}" for k, v in settings.items()]).config
    with pytest.raises(ConfigError) as caught:
        Logins(config).mechanisms_of(config.for_listener("SASL_PLAINTEXT"), "SASL_PLAINTEXT")
    assert f"PLAIN has the login module {PLAIN}" in str(caught.value)
    assert "hidden!" not in str(caught.value)


@pytest.mark.parametrize("key", ["sasl.jaas.config", "listener.name.ext.a.sasl.jaas.config"])
def test_a_setting_without_a_mechanism_has_no_effect_as_with_kafka(key):
    settings = {**LISTENERS, key: f'{PLAIN} required user_a="hidden!";'}
    config = load_config(overrides=[f"{k}={v}" for k, v in settings.items()]).config
    with pytest.raises(ConfigError) as caught:
        Logins(config).mechanisms_of(config.for_listener("EXT.A"), "EXT.A")
    assert "listener.name.ext.a.plain.sasl.jaas.config must name its users" in str(caught.value)
    assert "hidden!" not in str(caught.value)


def test_a_broker_with_a_file_of_users(tmp_path):
    path = tmp_path / "jaas.conf"
    path.write_text(section("KafkaServer", "alice"))
    settings = LISTENERS | {"barnabas.sasl.jaas.file": str(path)}
    with Broker(config=settings) as broker, Wire(broker) as wire:
        assert wire.log_in(b"\0alice\0secret").error_code == 0
