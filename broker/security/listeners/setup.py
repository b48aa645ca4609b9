"""Construction of a broker's access control and quotas from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.security import super_users_of
from barnabas.broker.security.acls.authorizer import Audit, Authorizer
from barnabas.broker.security.quotas.quota_rates import Windows
from barnabas.broker.security.quotas.quotas import Quotas

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.acls.access import Generation


def authorizer_of(config: BrokerConfig, generation: Generation, audit: Audit) -> Authorizer | None:
    """Return the authorizer by ACLs, or None without access control."""
    if not config.authorizer_class_name:
        return None
    return Authorizer(
        generation,
        super_users_of(config.super_users),
        audit,
        allows_without_acls=config.allow_everyone_if_no_acl_found,
    )


def quotas_of(config: BrokerConfig, clock: Clock, generation: Generation) -> Quotas:
    """Return the counters of quotas, without any quota yet."""
    quotas = Quotas(clock, generation)
    quotas.windows = Windows(config.quota_window_num, config.quota_window_size_seconds)
    quotas.mutation_windows = Windows(
        config.controller_quota_window_num, config.controller_quota_window_size_seconds
    )
    return quotas
