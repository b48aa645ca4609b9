"""Base of all handlers: routes, requests in parts, errors, and responses that wait."""
