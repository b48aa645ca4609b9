"""The worst request of every API and every HTTP route, by an ordinary user: what it costs others.

``apis.py`` and ``routes.py`` are the tables; a new API or route without a row fails by name.
"""
