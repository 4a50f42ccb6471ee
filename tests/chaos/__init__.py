"""Faults under load: five hosts, a mixed load whose results are known, and what came of it.

    make chaos CHAOS_SECONDS=600 CHAOS_SEED=1
    python -m chaos --seconds 60 --seed 7 --only node-kill,cut

`hosts` makes the machines, `switch` the network between them, `schedule` what happens when,
`faults` makes it happen, `keeper` starts again what a deployment would, `load` is the driver's
program, `oracle` judges what it recorded, `report` writes it down.
"""
