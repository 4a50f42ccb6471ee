"""Ray's cluster launcher is not here; `sdk` has what programs ask of it."""
