"""``barnabas serve``: a broker until SIGTERM or Ctrl-C.

Log lines go to standard error. Standard output gets a line for each listener when the broker is
ready, and then one with the words that Testcontainers' modules and scripts written for Kafka wait
for.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
from typing import TYPE_CHECKING

from barnabas.broker.cli import configuration
from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.printing import print_text
from barnabas.broker.config.addresses import address_text
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.cluster import without_password
from barnabas.broker.config.loading.loader import LoadedConfig
from barnabas.broker.config.types import ConfigError
from barnabas.broker.runtime.build import build_name
from barnabas.broker.runtime.logs import configure_logging
from barnabas.broker.runtime.process import tune_process
from barnabas.broker.version import __version__

if TYPE_CHECKING:
    from barnabas.broker.network.socket_server import ListenError
    from barnabas.storage.errors import Corrupt

logger = logging.getLogger("barnabas.broker.cli.commands.serve")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a configuration."""
    parser.usage = "barnabas serve [server.properties] [options]"
    parser.epilog = "Keys are Kafka's own; 'barnabas config' lists them all."
    configuration.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run a broker; return 0 after an orderly stop."""
    loaded = load(arguments)
    configure_logging(loaded.config.log_level, loaded.config.log_format)
    described = _broker_fields(loaded.config)
    logger.info("barnabas starts version=%s build=%s %s", __version__, build_name(), described)
    report_keys(loaded)
    tune_process()
    return serve(loaded.config)


def _broker_fields(config: BrokerConfig) -> str:
    """Return the identity of the broker or of its cluster, without secrets."""
    if config.metadata is None:
        return f"node_id={config.node_id}"
    node_id = config.node_id if "node.id" in config.settings else "given"
    store = without_password(config.metadata)
    return f"mode=cluster node_id={node_id} store={store} lease_ms={config.lease_ms}"


def report_keys(loaded: LoadedConfig) -> None:
    """Log the keys without effect in one line, and unknown ones in another."""
    if loaded.ignored:
        logger.info("settings without effect here: %s", ", ".join(loaded.ignored))
    if loaded.unknown:
        logger.warning("unknown settings: %s", ", ".join(loaded.unknown))


def serve(config: BrokerConfig) -> int:
    """Run a broker; raises CommandError with one line if it cannot start."""
    from barnabas.broker import daemon
    from barnabas.broker.network.socket_server import ListenError
    from barnabas.protocol.errors import KafkaError
    from barnabas.storage.errors import Corrupt, StorageError
    from barnabas.storage.files.file_system import AlreadyLocked
    from barnabas.storage.metastore.interface import MetaStoreError

    try:
        return daemon.run(config, announce)
    except AlreadyLocked:
        directory = config.data_directory
        raise CommandError(f"{directory}: another broker is using this data directory") from None
    except ListenError as error:
        remedy = _other_port(config, error) if error.is_taken else ""
        raise CommandError(f"{error} ({_origin(config, error.key)}){remedy}") from None
    except Corrupt as error:
        raise CommandError(f"{error}{_repair_hint(config, error)}") from None
    except (ConfigError, StorageError, MetaStoreError) as error:
        raise CommandError(str(error)) from None
    except KafkaError as error:
        raise CommandError(f"barnabas.create.topics: {error.message}") from None
    except OSError as error:
        path, reason = error.filename or config.data_directory, error.strerror or error
        raise CommandError(f"{path}: {reason} ({_origin(config, 'log.dirs', 'log.dir')})") from None


def _other_port(config: BrokerConfig, error: ListenError) -> str:
    """Return the option that takes another port, or nothing if that needs more than one setting."""
    if error.key == "barnabas.http.listener" and config.http_address is not None:
        host, port = config.http_address
        value = address_text(host, _port_beside(port))
    elif error.key == "listeners" and len(config.endpoints) == 1:
        (endpoint,) = config.endpoints
        value = f"{endpoint.name}://{address_text(endpoint.host, _port_beside(endpoint.port))}"
    else:
        return ""
    return f"; for another port, start with -X {error.key}={value}"


def _port_beside(port: int) -> int:
    return port + 10_000 if port + 10_000 < 65_536 else port - 10_000


def _repair_hint(config: BrokerConfig, error: Corrupt) -> str:
    """Return a hint at the repair command, or an empty text if no command repairs the damage."""
    from barnabas.storage.errors import StrayDirectory
    from barnabas.storage.store.checkpoint_work import CHECKPOINT_NAMES

    is_checkpoint = os.path.basename(error.path) in CHECKPOINT_NAMES
    if config.is_of_cluster or isinstance(error, StrayDirectory) or is_checkpoint:
        return ""
    directory = shlex.quote(config.data_directory)
    return f"; `barnabas check --repair -d {directory}` shows what a repair would lose"


def _origin(config: BrokerConfig, *keys: str) -> str:
    """Return the origin of the first of ``keys`` that is set, or of the default."""
    key = next((each for each in keys if each in config.settings), keys[-1])
    given = config.settings.get(key)
    return f"{key}, {given[0].origin if given else 'default'}"


def announce(line: str) -> None:
    """Print a line at once, through any buffer."""
    print_text(line, flush=True)
