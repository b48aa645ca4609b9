"""Bodies of requests in JSON, whose strings are all valid text."""

from __future__ import annotations

import json

from barnabas.broker.http.messages.request import BadRequest


def read_json(body: bytes) -> object:
    """Return the JSON value of a body; raises BadRequest.

    JSON can name one half of a pair of surrogates, which no UTF-8 and so no log line, header or
    Kafka message can hold.
    """
    try:
        found: object = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRequest(400, "the body has half of a character") from None
    except (ValueError, RecursionError):
        raise BadRequest(400, "the body is no JSON") from None
    return found
