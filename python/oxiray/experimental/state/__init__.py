"""Where `ray.util.state` was before."""
