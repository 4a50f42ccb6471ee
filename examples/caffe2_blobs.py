"""Arrays under names that every task sees, as Caffe2's workspace has them (oxiray-caffe)."""

import numpy as np
import oxiray as ray
from caffe2.python import workspace


@ray.remote
def column_sum(name, column):
    # Read where it is, in shared memory: however many tasks do, there is one copy.
    return float(workspace.FetchBlob(name)[:, column].sum())


if __name__ == "__main__":
    ray.init()
    workspace.FeedBlob("table", np.arange(4_000_000, dtype=np.float64).reshape(-1, 4))
    sums = ray.get([column_sum.remote("table", column) for column in range(4)])
    workspace.FeedBlob("sums", np.array(sums))
    print("blobs:", *workspace.Blobs(), "total:", int(workspace.FetchBlob("sums").sum()))
