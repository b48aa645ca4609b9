"""What every handler stands on: routes, requests in parts, errors, answers that wait."""
