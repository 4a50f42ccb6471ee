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
    /// Where sessions live: a directory of your own, with a short path, since sockets are in it.
    TMPDIR: Path = "OXIRAY_TMPDIR", "$XDG_RUNTIME_DIR/oxiray, or /tmp/oxiray-UID";
    /// How many ended sessions' logs and records are kept, to be looked at by `--session last`.
    KEEP_SESSIONS: Count = "OXIRAY_KEEP_SESSIONS", "10";
    /// Which cluster `init()` and the command mean when it is not said: "auto", "local" or HOST:PORT.
    ADDRESS: Text = "OXIRAY_ADDRESS" or "RAY_ADDRESS", "";
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
    /// Seconds without a connection after which the dashboard's process ends; a new one starts it again.
    DASHBOARD_IDLE_S: Number = "OXIRAY_DASHBOARD_IDLE_S", "60";
    /// Errors of tasks that nobody has looked at when their last reference goes are not printed.
    IGNORE_UNHANDLED_ERRORS: Switch = "OXIRAY_IGNORE_UNHANDLED_ERRORS" or "RAY_IGNORE_UNHANDLED_ERRORS", "0";
    /// The share of a machine's memory in use above which workers are ended.
    MEMORY_USAGE_THRESHOLD: Number = "RAY_memory_usage_threshold", "0.95";
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
    /// While bars of `tqdm_ray` are shown, what the driver prints appears above them.
    TQDM_PATCH_PRINT: Switch = "RAY_TQDM_PATCH_PRINT", "1";
}

settings! { OURSELVES, Ourselves:
    /// The session that a zygote's workers belong to.
    SESSION_DIR: Path = "OXIRAY_SESSION_DIR", "";
    /// `sys.path` of the driver, as JSON, for the zygote.
    SYS_PATH: Text = "OXIRAY_SYS_PATH", "";
    /// Modules that the driver has imported, for the zygote to import ahead.
    PRELOAD: Text = "OXIRAY_PRELOAD", "";
    /// The version of `OXIRAY_PYTHON`, so that nobody need ask it.
    PYTHON_VERSION: Text = "OXIRAY_PYTHON_VERSION", "";
    /// The C library of this node service was tuned for its work: what it starts is not to inherit that.
    TUNED: Switch = "OXIRAY_TUNED", "0";
    /// The service ends when its standard input does, that is with whoever started it.
    END_WITH_STDIN: Switch = "OXIRAY_END_WITH_STDIN", "0";
}
