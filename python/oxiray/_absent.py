"""Ray's names that are not here, and why: the table that the documentation and the errors say.

A name stands for all that is in it, `*.name` for that name wherever it is. `tests/surface`
compares the table with Ray's names: each is here, or in it.
"""

from __future__ import annotations

import sys

# Why, and which names.
ABSENT: dict[str, str] = {
    "a library above Core, which are not here: Ray's own need Ray": (
        "ray.data ray.train ray.tune ray.serve ray.rllib ray.air ray.llm ray.workflow "
        "ray.util.spark ray.experimental.shuffle ray.experimental.sandbox"
    ),
    "of compiled graphs: `execute()` makes the calls one by one": (
        "ray.dag.compiled_dag_node ray.dag.context ray.dag.DAGContext ray.dag.DAGOperationFuture "
        "ray.dag.GPUFuture ray.dag.CollectiveOutputNode ray.experimental.channel "
        "ray.experimental.collective ray.experimental.compiled_dag_ref"
    ),
    "of tensor transports between graphics cards (NIXL, NCCL)": (
        "ray.experimental.RDTManager ray.experimental.TensorTransportManager "
        "ray.experimental.TensorTransportMetadata ray.experimental.CommunicatorMetadata "
        "ray.experimental.register_tensor_transport ray.experimental.register_nixl_memory "
        "ray.experimental.deregister_nixl_memory ray.experimental.set_target_for_ref "
        "ray.experimental.set_target_device_for_ref ray.experimental.wait_tensor_freed "
        "ray.experimental.set_nixl_memory_pool ray.experimental.register_nixl_memory_pool "
        "ray.experimental.register_tensor_to_nixl ray.experimental.deregister_tensor_from_nixl "
        "ray.experimental.set_nixl_cuda_stream *.with_tensor_transport *.tensor_transport"
    ),
    "of the inside of references: `oxiray memory` shows where each was made": (
        "ray.ObjectRef.call_site ray.ObjectID.call_site"
    ),
    "of slices of TPUs, which are not counted here": "ray.util.tpu ray.util.accelerators.tpu",
    "an editor's debugger: `ray.util.rpdb` and `ray debug` answer breakpoints": (
        "ray.util.debugpy ray.util.ray_debugpy"
    ),
    "of Ray's cluster launcher: `oxiray start` makes a machine part of a cluster": (
        "ray.cluster_utils.AutoscalingCluster ray.util.get_node_instance_id ray._config"
    ),
    "of the inside of Ray's id, pool, debugging and client code": (
        "*.redis_shard_hash ray.ActorID.of ray.TaskID.for_actor_creation_task "
        "ray.TaskID.for_actor_task ray.TaskID.for_driver_task ray.TaskID.for_fake_task "
        "ray.TaskID.for_normal_task *.owner_address "
        "ray.Language.value "
        "ray.client_builder.ClientContext.disconnect "
        "ray.cluster_utils.Cluster.remaining_processes_alive ray.util.debug.Suspect "
        "ray.util.iter.LocalIterator.get_metrics ray.util.iter.LocalIterator.zip_with_source_actor "
        "ray.util.multiprocessing.pool.PoolTaskError "
        "ray.util.multiprocessing.pool.ResultThread ray.util.multiprocessing.pool.div_round_up "
        "ray.util.multiprocessing.pool.ray_get_if_needed "
        "ray.util.multiprocessing.pool.ray_put_if_needed "
        "ray.util.serialization.StandaloneSerializationContext "
        "ray.experimental.internal_kv.internal_kv_get_gcs_client "
        "ray.experimental.tqdm_ray.instance ray.widgets.Template "
        "ray.exceptions.RayError.from_ray_exception "
        "ray.runtime_env.RuntimeEnvConfig.build_proto_runtime_env_config "
        "ray.runtime_env.RuntimeEnvConfig.from_proto"
    ),
    "of how Ray's dashboard makes rows: ours come from the engine, as `util.state` gives them": (
        "ray.util.state.common.ClusterEventState ray.util.state.common.GetLogOptions "
        "ray.util.state.common.Link ray.util.state.common.ListApiResponse "
        "ray.util.state.common.NestedTaskSummary ray.util.state.common.RuntimeEnvState "
        "ray.util.state.common.StateSummary ray.util.state.common.SummaryApiResponse "
        "ray.util.state.common.TaskSummaries.to_summary_by_lineage "
        "ray.util.state.common.protobuf_message_to_dict "
        "ray.util.state.common.protobuf_to_task_state_dict ray.util.state.common.state "
        "ray.util.state.common.state_column ray.util.state.exception.DataSourceUnavailable "
        "ray.util.state.exception.ServerUnavailable *.JobState.schema_dict"
    ),
}


def why_absent(name: str) -> str | None:
    """Why one of Ray's names is not here, if that is known; `name` begins with "ray."."""
    for reason, names in ABSENT.items():
        for listed in names.split():
            is_meant = name == listed or name.startswith(listed + ".")
            if is_meant or (listed.startswith("*") and name.endswith(listed[1:])):
                return reason
    return None


def no_such_name(module: str, name: str) -> AttributeError:
    """The error of asking a module for a name that it does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    reason = why_absent(f"ray{module.removeprefix('oxiray')}.{name}")
    if reason is not None:
        text += f": it is {reason}. docs/compatibility.md lists what is here"
    # Python looks for what was meant when it shows the error.
    return AttributeError(text, name=name, obj=sys.modules.get(module))
