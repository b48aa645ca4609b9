"""The audit log: who asked for what, from where, and whether it was allowed."""

from __future__ import annotations

import json
import logging

from barnabas.broker.security.operations import Operation, ResourceType, shown

logger = logging.getLogger("barnabas.audit")


class AuditLog:
    """Writes decisions as JSON lines: denials as INFO, what is allowed as DEBUG."""

    def decided(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        allowed: bool,
        rule: str,
    ) -> None:
        """Write one line, if there is to be one."""
        level = logging.DEBUG if allowed else logging.INFO
        if logger.isEnabledFor(level):
            event = {
                "event": "allowed" if allowed else "denied",
                "principal": principal,
                "host": host,
                "operation": shown(operation),
                "resource": f"{shown(resource_type)}:{name}",
                "rule": rule,
            }
            logger.log(level, "%s", json.dumps(event))
