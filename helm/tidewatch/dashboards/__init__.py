"""The Grafana dashboards of the chart, as code: plain functions that return dictionaries.

    python -m helm.tidewatch.dashboards     # writes the JSON beside the code, from the checkout

Every query is run in a test against a Prometheus that scrapes the programs (tests/helm/test_dashboards.py).
"""
