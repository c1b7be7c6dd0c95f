from __future__ import annotations

from tests.adapter.foundation.sources.kubernetes import conftest as kubernetes

no_proxy = kubernetes._no_proxy
server = kubernetes.server
client = kubernetes.client
tasks = kubernetes.tasks
