"""Spans of OpenTelemetry around tasks and calls of actors: `init(_tracing_startup_hook=)`."""
