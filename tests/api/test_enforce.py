"""What tasks ask for is what they get, where the kernel can be told: `init(_enforce=True)`."""

import os

import pytest
from control_groups import ROOT, own_group


def groups_can_be_made():
    for controller in ("memory", "cpu"):
        version, path = own_group(controller)
        if version != 1:
            return os.access(os.path.join(ROOT, path, "cgroup.subtree_control"), os.W_OK)
        if not os.access(os.path.join(ROOT, controller, path), os.W_OK):
            return False
    return True


needs_groups = pytest.mark.skipif(not groups_can_be_made(), reason="no control groups here")


@needs_groups
def test_who_takes_more_than_it_said_fails_alone(driver):
    done = driver(
        """
        import os
        import oxiray as ray
        ray.init(num_cpus=4, _enforce=True)

        @ray.remote
        class Neighbour:
            def pid(self):
                return os.getpid()

        @ray.remote(memory=100 << 20)
        def take(megabytes):
            return len(bytearray(b"x" * (megabytes << 20)))

        @ray.remote
        def free(megabytes):
            return len(bytearray(b"x" * (megabytes << 20)))

        neighbour = Neighbour.options(memory=50 << 20).remote()
        pid = ray.get(neighbour.pid.remote())
        assert ray.get(take.remote(40)) == 40 << 20
        assert ray.get(free.remote(300)) == 300 << 20, "it asked for nothing in particular"
        try:
            ray.get(take.remote(300), timeout=50)
        except ray.exceptions.OutOfMemoryError as error:
            print(error)
        else:
            raise SystemExit("it was let do")
        assert ray.get(take.remote(40)) == 40 << 20
        assert ray.get(neighbour.pid.remote()) == pid
        """
    )
    assert "memory=104857600" in done.stdout and "enforced" in done.stdout, done.stdout
    assert not left_groups()


@needs_groups
def test_a_share_of_a_processor_is_no_more_than_that(driver):
    done = driver(
        """
        import os, time
        import oxiray as ray
        ray.init(num_cpus=2, _enforce=True)

        @ray.remote(num_cpus=0.25)
        def burn():
            begin, used = time.monotonic(), time.process_time()
            while time.monotonic() - begin < 2:
                pass
            return (time.process_time() - used) / (time.monotonic() - begin)

        share = ray.get(burn.remote())
        print(share)
        assert share < 0.4, share
        """
    )
    assert done.stdout
    assert not left_groups()


def left_groups():
    left = []
    for controller in ("memory", "cpu"):
        version, path = own_group(controller)
        folder = os.path.join(ROOT, controller, path) if version == 1 else os.path.join(ROOT, path)
        if os.path.isdir(folder):
            left += [name for name in os.listdir(folder) if name.startswith("oxiray-session")]
    return left


def test_without_rights_one_sentence_says_so(driver, tmp_path):
    done = driver(
        "import oxiray as ray; ray.init(num_cpus=1, _enforce=True)",
        env={"OXIRAY_CGROUP_ROOT": str(tmp_path)},
        check=False,
    )
    assert done.returncode != 0
    assert "memory= and num_cpus= cannot be enforced" in done.stderr, done.stderr
    assert "Delegate=yes" in done.stderr


def test_wrong_values_are_refused(fresh):
    with pytest.raises(TypeError, match="_enforce"):
        fresh(_enforce="yes")
