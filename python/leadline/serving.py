"""Requests of a web application as regions, by route. Wrap the application; nothing of it changes.

>>> app = leadline.serving.asgi(app)                      # FastAPI, Starlette, any ASGI application
>>> app.wsgi_app = leadline.serving.wsgi(app.wsgi_app, app.url_map)   # Flask; any WSGI application without a map
"""

from __future__ import annotations

from leadline.capture.serving import asgi, wsgi

__all__ = ["asgi", "wsgi"]
