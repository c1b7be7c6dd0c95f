"""From rule files to rules, with everything that is wrong with them."""
