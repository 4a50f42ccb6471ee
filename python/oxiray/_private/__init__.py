"""Names that Ray keeps private and programs reach for all the same.

Thin adapters on the public API, no more than programs were seen to use.
"""
