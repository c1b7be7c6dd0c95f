"""What is kept of rules when a changed file breaks them."""
