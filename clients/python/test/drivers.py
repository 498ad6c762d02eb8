"""Connections of frameworks to the server of the tests."""
import os

import pytest


def django_connection():
    django = pytest.importorskip("django")
    from django.conf import settings
    from django.db import connection
    if not settings.configured:
        settings.configure(USE_TZ=True, DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}})
        django.setup()
    return connection
