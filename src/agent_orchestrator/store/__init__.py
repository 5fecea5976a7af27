"""Where journals live: one port, an adapter a file, one conformance suite for all of them."""
