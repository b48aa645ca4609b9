"""Login modules of the listeners, and the list of known modules.

Modules are Java classes. Any class except those of the supported mechanisms is refused by name. So
this is a list of allowed classes: Apache Kafka's list of forbidden ones (CVE-2023-25194,
CVE-2025-27818) had to grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import ConfigError, ConflictingValues
from barnabas.protocol.sasl.jaas import (
    JaasModule,
    MalformedJaas,
    parse_jaas_file,
    parse_jaas_value,
)
from barnabas.storage.files.io import LocalFileSystem

if TYPE_CHECKING:
    from barnabas.broker.config.listener_keys import ListenerConfig

_KEY: Final = "sasl.jaas.config"
_FILE_KEY: Final = "barnabas.sasl.jaas.file"
_PACKAGE: Final = "org.apache.kafka.common.security"

SCRAM_MODULE: Final = f"{_PACKAGE}.scram.ScramLoginModule"
MODULES: Final[Mapping[str, str]] = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
"""Login module of each mechanism."""

_KERBEROS: Final = "Krb5LoginModule"
_SECTION: Final = "KafkaServer"


class JaasModules:
    """Login modules of one broker, from its listeners' settings or from a file."""

    def __init__(self, path: str | None) -> None:
        """``path`` names the file; it is read when a listener has no setting of its own."""
        self._path = path
        self._sections: dict[str, list[JaasModule]] | None = None

    def of(self, listener: ListenerConfig, name: str, mechanism: str) -> JaasModule | None:
        """Return the module of a listener's mechanism, or None.

        Raises ConfigError if it cannot be read, or names a class of another mechanism.
        """
        key = _own_key(listener, mechanism)
        if key is None:
            return self._of_file(name, mechanism)
        text = str(listener.value(_KEY, mechanism))
        try:
            module = parse_jaas_value(text)
        except MalformedJaas as error:
            raise hidden(key, str(error)) from None
        if module.name != MODULES[mechanism]:
            raise hidden(key, f"{mechanism} has the login module {MODULES[mechanism]}")
        return module

    def where(self, listener: ListenerConfig, name: str, mechanism: str) -> str:
        """Return the place of that module's configuration, for messages."""
        if _own_key(listener, mechanism) is None and self._path is not None:
            return f"{self._path} ({_FILE_KEY})"
        return f"listener.name.{name.lower()}.{mechanism.lower()}.{_KEY}"

    def _of_file(self, name: str, mechanism: str) -> JaasModule | None:
        if self._path is None:
            return None
        if self._sections is None:
            self._sections = _read(self._path)
        section = f"{name.lower()}.{_SECTION}"
        if section not in self._sections:
            section = _SECTION
        modules = self._sections.get(section, [])
        for module in modules:
            if module.name not in MODULES.values():
                problem = _unavailable(module.name)
                raise ConflictingValues(
                    _FILE_KEY, self._path, f"{self._path}: section {section}: {problem}"
                )
        return _joined([each for each in modules if each.name == MODULES[mechanism]])


def _own_key(listener: ListenerConfig, mechanism: str) -> str | None:
    """Return the key of a mechanism's module; a key without the mechanism has no effect."""
    key = listener.name_of(_KEY, mechanism)
    is_own = key is not None and key.endswith(f".{mechanism.lower()}.{_KEY}")
    return key if is_own else None


def hidden(key: str, reason: str) -> ConfigError:
    """Return an error without the value, which contains passwords."""
    return ConfigError(key, "[hidden]", reason)


def _unavailable(name: str) -> str:
    if name.rpartition(".")[2] == _KERBEROS:
        return f"{_KERBEROS}: Kerberos (GSSAPI) is not available"
    allowed = ", ".join(sorted({each.rpartition(".")[2] for each in MODULES.values()}))
    return f"no Java class can be loaded; known are {allowed}"


def _joined(modules: Sequence[JaasModule]) -> JaasModule | None:
    """Merge several modules of a class; of a repeated option the first one counts."""
    if not modules:
        return None
    options: dict[str, str] = {}
    for module in reversed(modules):
        options.update(module.options)
    return JaasModule(modules[0].name, modules[0].flag, options)


def _read(path: str) -> dict[str, list[JaasModule]]:
    try:
        text = LocalFileSystem().read_file(path).decode()
        return parse_jaas_file(text)
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except MalformedJaas as error:
        problem = str(error)
    raise ConflictingValues(_FILE_KEY, path, f"{path}: {problem} ({_FILE_KEY})")
