"""Values of metrics as the three metrics APIs serve them."""
