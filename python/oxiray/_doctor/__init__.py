"""The checks of `oxiray doctor`: each looks at one thing and says what to do about it."""
