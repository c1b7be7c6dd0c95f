"""HTTP for every program: requests and responses as values, and the WSGI application around them."""
