"""From a metric and a request to the text of a query."""
