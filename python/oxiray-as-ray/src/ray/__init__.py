"""`ray` is `oxiray`, in every process that has this distribution installed.

`ray.x.y` is the very module `oxiray.x.y`, so that classes, exceptions and pickles are the same
under both names. `ray` itself is a module of its own that forwards: only its version differs. Other
distributions can put packages beside it: `ray.theirs` is found in the folder where this file is.
"""

# Names of ours would hide oxiray's: all that is done, is done there.
from oxiray import _alias as _oxiray_alias

_oxiray_alias.refuse_real_ray(__file__)
_oxiray_alias.become_alias(__name__)
