"""Query plans: how widely a metric's query may be asked, proven on its parsed text."""

from adapter.metrics.rulebook.plans.planning import plan_of, planned_query
from adapter.metrics.rulebook.plans.row_selection import RowIndex, fold_rows, row_filter, select_rows

__all__ = ["RowIndex", "fold_rows", "plan_of", "planned_query", "row_filter", "select_rows"]
