"""Erlang nodes as seen from outside, and the way into them."""
