//! All settings. A line of documentation is the sentence of the page.

use crate::setting::{Audience, Kind, Setting};

macro_rules! other {
    () => {
        None
    };
    ($other:literal) => {
        Some($other)
    };
}

/// `NAME: Kind = "VARIABLE" or "RAY'S", "default";` for each, its documentation first.
macro_rules! settings {
    ($all:ident, $audience:ident: $(
        $(#[doc = $says:literal])+
        $item:ident: $kind:ident = $name:literal $(or $other:literal)?, $default:literal;
    )+) => {
        $(
            $(#[doc = $says])+
            pub static $item: Setting = Setting {
                name: $name,
                or: other!($($other)?),
                kind: Kind::$kind,
                default: $default,
                says: concat!($($says),+),
                audience: Audience::$audience,
            };
        )+
        /// Those, in the order of the page.
        pub static $all: &[&Setting] = &[$(&$item),+];
    };
}

settings! { USERS, User:
    /// Where sessions live: a directory of your own, with a short path, since sockets are in it. The
    /// system removes `XDG_RUNTIME_DIR` when you have logged out everywhere: a node that is to run on
    /// wants another directory here, or `loginctl enable-linger`.
    TMPDIR: Path = "OXIRAY_TMPDIR", "$XDG_RUNTIME_DIR/oxiray, or /tmp/oxiray-UID";
    /// How many ended sessions' logs and records are kept, to be looked at by `--session last`.
    KEEP_SESSIONS: Count = "OXIRAY_KEEP_SESSIONS", "10";
    /// Which cluster `init()` and the command mean when it is not said: "auto", "local" or HOST:PORT.
    ADDRESS: Text = "OXIRAY_ADDRESS" or "RAY_ADDRESS", "";
    /// The label `ray.io/market-type` of a node that is started: "spot", say. As the next three it is set by who
    /// runs nodes for others, and a label that is given counts more.
    NODE_MARKET_TYPE: Text = "RAY_NODE_MARKET_TYPE", "";
    /// Its label `ray.io/node-group`.
    NODE_TYPE_NAME: Text = "RAY_NODE_TYPE_NAME", "";
    /// Its label `ray.io/availability-region`.
    NODE_REGION: Text = "RAY_NODE_REGION", "";
    /// Its label `ray.io/availability-zone`.
    NODE_ZONE: Text = "RAY_NODE_ZONE", "";
    /// The token of the cluster to start or to join; unlike `--token` it is not seen in `ps`.
    TOKEN: Text = "OXIRAY_TOKEN", "";
    /// The Python that workers of a started node run, and that has the package.
    PYTHON: Path = "OXIRAY_PYTHON", "python3";
    /// The node service's program, where it is not the package's own.
    OXIRAYD: Path = "OXIRAY_OXIRAYD", "";
    /// How much the node service logs: ERROR, WARN, INFO, DEBUG or TRACE.
    LOG: Text = "OXIRAY_LOG", "INFO";
    /// Bytes of a node's record of events; when there are more, the oldest go.
    EVENTS_MAX_BYTES: Count = "OXIRAY_EVENTS_MAX_BYTES", "1073741824";
    /// Files of a node's record of events, likewise.
    EVENTS_MAX_FILES: Count = "OXIRAY_EVENTS_MAX_FILES", "10000";
    /// Seconds that a creator waits for memory while nothing moves, before `ObjectStoreFullError`.
    STORE_FULL_TIMEOUT_S: Number = "OXIRAY_STORE_FULL_TIMEOUT_S", "30";
    /// Modules that workers import are loaded before the next ones are forked.
    PRELOAD: Switch = "OXIRAY_PRELOAD", "1";
    /// Seconds after which a driver looks whether tasks that have not moved can ever go on, and says so
    /// if they cannot: they wait for each other, or for what idle actors hold. 0: never.
    WARN_STUCK_AFTER_S: Number = "OXIRAY_WARN_STUCK_AFTER_S", "5";
    /// The address of the dashboard to which `oxiray job` and `JobSubmissionClient` hand jobs in.
    API_SERVER_ADDRESS: Text = "RAY_API_SERVER_ADDRESS", "";
    /// The token of that dashboard, where its address does not have it.
    DASHBOARD_TOKEN: Text = "OXIRAY_DASHBOARD_TOKEN", "";
    /// Seconds that a job has to end by itself when it is stopped, before it is killed.
    JOB_STOP_WAIT_TIME_S: Number = "RAY_JOB_STOP_WAIT_TIME_S", "3";
    /// What `init()` says of a job's runtime environment counts more than what it was handed in with.
    OVERRIDE_JOB_RUNTIME_ENV: Switch = "RAY_OVERRIDE_JOB_RUNTIME_ENV", "0";
    /// Bytes that a directory or module may have which a runtime environment brings along.
    PACKAGE_MAX_BYTES: Count = "OXIRAY_PACKAGE_MAX_BYTES", "524288000";
    /// Bytes that an archive of a runtime environment may have when it is unpacked.
    UNPACKED_MAX_BYTES: Count = "OXIRAY_UNPACKED_MAX_BYTES", "21474836480";
    /// Bytes of unpacked and installed packages that a node keeps; beyond that, those that nobody uses go.
    ENVIRONMENTS_MAX_BYTES: Count = "OXIRAY_ENVIRONMENTS_MAX_BYTES", "10737418240";
    /// What .gitignore leaves out is sent along with a runtime environment all the same.
    IGNORE_GITIGNORE: Switch = "RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "0";
    /// Names that are not sent along with a runtime environment, whatever is excluded else.
    DEFAULT_EXCLUDES: Text = "RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES", ".git,.venv,venv,__pycache__";
    /// Seconds without a connection after which the dashboard's process ends; a new one starts it again.
    DASHBOARD_IDLE_S: Number = "OXIRAY_DASHBOARD_IDLE_S", "60";
    /// The dashboard answers other machines without TLS, too, and jobs are handed in to such a one:
    /// whoever is on the way reads the token. For a network that nobody else is in.
    DASHBOARD_PLAIN: Switch = "OXIRAY_DASHBOARD_PLAIN", "0";
    /// Errors of tasks that nobody has looked at when their last reference goes are not printed.
    IGNORE_UNHANDLED_ERRORS: Switch = "OXIRAY_IGNORE_UNHANDLED_ERRORS" or "RAY_IGNORE_UNHANDLED_ERRORS", "0";
    /// Milliseconds for which a node that has just joined is not given up, whatever it says or not.
    HEALTH_CHECK_INITIAL_DELAY_MS: Count = "RAY_health_check_initial_delay_ms", "5000";
    /// Milliseconds of silence after which a node is suspect and gets nothing new, and between two
    /// checks of it. This and the next two are read where the head is started.
    HEALTH_CHECK_PERIOD_MS: Count = "RAY_health_check_period_ms", "3000";
    /// Milliseconds that a check may take: a node is given up after `(threshold - 1) * period +
    /// timeout` without a word. One whose process ends is given up at once.
    HEALTH_CHECK_TIMEOUT_MS: Count = "RAY_health_check_timeout_ms", "10000";
    /// How many checks in a row must fail.
    HEALTH_CHECK_FAILURE_THRESHOLD: Count = "RAY_health_check_failure_threshold", "5";
    /// The share of a machine's memory in use above which workers are ended.
    MEMORY_USAGE_THRESHOLD: Number = "RAY_memory_usage_threshold", "0.95";
    /// Milliseconds between two looks at the memory, at most: it is looked at sooner when little is
    /// left. 0: it is not looked at, and the kernel ends whom it likes.
    MEMORY_MONITOR_REFRESH_MS: Count = "RAY_memory_monitor_refresh_ms", "250";
    /// How often a task is tried again that was ended because memory ran out, apart from its
    /// `max_retries`; -1: for as long as others of its owner run on that machine, and twice after.
    TASK_OOM_RETRIES: Number = "RAY_task_oom_retries", "-1";
    /// Milliseconds before the first such try; each that follows waits twice as long, up to a minute.
    TASK_OOM_RETRY_DELAY_BASE_MS: Count = "RAY_task_oom_retry_delay_base_ms", "1000";
    /// Where the kernel's control groups are mounted: the limits of a container are read there.
    CGROUP_ROOT: Path = "OXIRAY_CGROUP_ROOT", "/sys/fs/cgroup";
    /// Where objects go when the store is full: a directory or a URL.
    SPILLING_DIRECTORY: Text = "RAY_object_spilling_directory", "";
    /// The same as JSON, as Ray's `object_spilling_config`.
    SPILLING_CONFIG: Text = "RAY_object_spilling_config", "";
    /// Spilling is told in the driver's output.
    VERBOSE_SPILL_LOGS: Switch = "RAY_verbose_spill_logs", "1";
    /// Bytes that may be kept of how objects were made, to make them again when their node is lost; the oldest go first.
    MAX_LINEAGE_BYTES: Count = "RAY_max_lineage_bytes", "1073741824";
    /// Records the line that created each reference, for `oxiray memory`; it costs a look at the stack.
    RECORD_REF_CREATION_SITES: Switch = "RAY_record_ref_creation_sites", "0";
    /// References may be pickled outside of the engine, by `pickle.dumps(ref)` or as part of a function; then
    /// nobody knows who holds them, and their values are kept for ever. 0: that is an error.
    ALLOW_OUT_OF_BAND: Switch = "RAY_allow_out_of_band_object_ref_serialization", "1";
    /// Tensors of PyTorch are views of the store, and must not be written to.
    ZERO_COPY_TORCH_TENSORS: Switch = "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS", "0";
    /// Bytes of a worker's log file before a new part is begun.
    ROTATION_MAX_BYTES: Count = "OXIRAY_ROTATION_MAX_BYTES" or "RAY_ROTATION_MAX_BYTES", "16777216";
    /// How many older parts of a log file are kept.
    ROTATION_BACKUP_COUNT: Count = "OXIRAY_ROTATION_BACKUP_COUNT" or "RAY_ROTATION_BACKUP_COUNT", "3";
    /// Lines that many workers print are shown once, and counted.
    DEDUP_LOGS: Switch = "OXIRAY_DEDUP_LOGS" or "RAY_DEDUP_LOGS", "1";
    /// Seconds that such lines are counted before they are shown again.
    DEDUP_LOGS_AGG_WINDOW_S: Number = "OXIRAY_DEDUP_LOGS_AGG_WINDOW_S" or "RAY_DEDUP_LOGS_AGG_WINDOW_S", "5";
    /// Lines that are always shown.
    DEDUP_LOGS_ALLOW_REGEX: Pattern = "OXIRAY_DEDUP_LOGS_ALLOW_REGEX" or "RAY_DEDUP_LOGS_ALLOW_REGEX", "";
    /// Lines that are never shown.
    DEDUP_LOGS_SKIP_REGEX: Pattern = "OXIRAY_DEDUP_LOGS_SKIP_REGEX" or "RAY_DEDUP_LOGS_SKIP_REGEX", "";
    /// What workers print has a prefix in colour, at a terminal; `NO_COLOR` says the same of everything.
    COLOR_PREFIX: Switch = "RAY_COLOR_PREFIX", "1";
    /// Anything here: no colours, neither in tables nor of what workers print.
    NO_COLOR: Text = "NO_COLOR", "";
    /// While bars of `tqdm_ray` are shown, what the driver prints appears above them.
    TQDM_PATCH_PRINT: Switch = "RAY_TQDM_PATCH_PRINT", "1";
}

settings! { OURSELVES, Ourselves:
    /// The session that a zygote's workers belong to.
    SESSION_DIR: Path = "OXIRAY_SESSION_DIR", "";
    /// `sys.path` of the driver, as JSON, for the zygote.
    SYS_PATH: Text = "OXIRAY_SYS_PATH", "";
    /// Modules that the driver has imported, as workers will.
    DRIVER_MODULES: Text = "OXIRAY_DRIVER_MODULES", "";
    /// The runtime environment that a template makes, as JSON.
    ENVIRONMENT: Text = "OXIRAY_ENVIRONMENT", "";
    /// The node's number for that.
    ENVIRONMENT_NUMBER: Count = "OXIRAY_ENVIRONMENT_NUMBER", "0";
    /// Where modules of that are, as JSON: before all other places.
    ENVIRONMENT_PATHS: Text = "OXIRAY_ENVIRONMENT_PATHS", "";
    /// Where the working_dir of an environment is, for the files of requirements that name it.
    CREATE_WORKING_DIR: Path = "RAY_RUNTIME_ENV_CREATE_WORKING_DIR", "";
    /// The runtime environment of the job that a driver is, as JSON.
    JOB_RUNTIME_ENV: Text = "OXIRAY_JOB_RUNTIME_ENV", "";
    /// The id by which that job was handed in.
    JOB_SUBMISSION_ID: Text = "OXIRAY_JOB_SUBMISSION_ID", "";
    /// The version of `OXIRAY_PYTHON`, so that nobody need ask it.
    PYTHON_VERSION: Text = "OXIRAY_PYTHON_VERSION", "";
    /// The C library of this node service was tuned for its work: what it starts is not to inherit that.
    TUNED: Switch = "OXIRAY_TUNED", "0";
    /// The service ends when its standard input does, that is with whoever started it.
    END_WITH_STDIN: Switch = "OXIRAY_END_WITH_STDIN", "0";
}
