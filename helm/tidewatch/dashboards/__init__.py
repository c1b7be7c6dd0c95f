"""The Grafana dashboards of the chart, as code: functions that return models of Grafana's foundation SDK.

    python -m helm.tidewatch.dashboards     # writes the JSON beside the code, from the checkout

Every query is run in a test against a Prometheus that scrapes the programs (tests/helm/test_dashboards.py).
"""
