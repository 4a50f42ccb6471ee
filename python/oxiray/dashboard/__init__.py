"""By Ray's place for them: the clients of a cluster's dashboard. The dashboard is the engine's."""
