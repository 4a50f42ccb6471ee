//! The one table of failures: what each means, its number in frames and records, Ray's word for it
//! in lists of tasks, and the exception that Python raises.
//!
//! Python has no numbers of its own: the binding hands it the exception's name and what the data
//! is. A failure that is added here needs nothing else, unless its data is of a new kind.

/// What the data of a failure is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum About {
    /// There is none: the words say it all.
    Nothing,
    /// The exception that was raised, as the language described it.
    Exception,
    /// A task's id.
    Task,
    /// An actor's id.
    Actor,
    /// An object's id.
    Object,
}

impl About {
    /// Its name for the language's binding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Exception => "exception",
            Self::Task => "task",
            Self::Actor => "actor",
            Self::Object => "object",
        }
    }
}

macro_rules! failures {
    ($($(#[doc = $means:literal])+ $name:ident = $number:literal, $word:literal, $exception:literal, $about:ident;)+) => {
        /// Why there is no value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum FailureCode {
            $($(#[doc = $means])+ $name = $number,)+
        }

        impl FailureCode {
            /// All there are.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The code of a number; `None`: none of this version.
            pub fn from_u8(code: u8) -> Option<Self> {
                match code {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// Ray's word for it, in lists of tasks.
            pub fn error_type(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The exception of Python that it is raised as: a name of `oxiray.exceptions`.
            pub fn exception(self) -> &'static str {
                match self {
                    $(Self::$name => $exception,)+
                }
            }

            /// What comes with it as data, where something does.
            pub fn about(self) -> About {
                match self {
                    $(Self::$name => About::$about,)+
                }
            }
        }
    };
}

failures! {
    /// The task raised.
    TaskError = 0, "TASK_EXECUTION_EXCEPTION", "RayTaskError", Exception;
    /// Its worker died.
    WorkerCrashed = 1, "WORKER_DIED", "WorkerCrashedError", Nothing;
    /// Its actor is dead.
    ActorDied = 2, "ACTOR_DIED", "ActorDiedError", Actor;
    /// The process that knew the object is gone.
    OwnerDied = 3, "OWNER_DIED", "OwnerDiedError", Object;
    /// The owner does not know the object.
    ObjectLost = 4, "OBJECT_LOST", "ObjectLostError", Object;
    /// Its worker was ended because memory ran out.
    OutOfMemory = 5, "OUT_OF_MEMORY", "OutOfMemoryError", Nothing;
    /// It was cancelled.
    Cancelled = 6, "TASK_CANCELLED", "TaskCancelledError", Task;
    /// Its actor's process died, and the actor is being started again.
    ActorUnavailable = 7, "ACTOR_UNAVAILABLE", "ActorUnavailableError", Actor;
    /// The store has no room for it.
    StoreFull = 8, "OUT_OF_MEMORY", "ObjectStoreFullError", Nothing;
    /// The engine failed.
    System = 9, "LOCAL_RAYLET_DIED", "RaySystemError", Nothing;
    /// Its actor's constructor raised.
    ActorCreation = 10, "ACTOR_CREATION_FAILED", "ActorDiedError", Exception;
    /// Who wanted it did not wait for longer. It is told to nobody else.
    GetTimeout = 11, "OBJECT_FETCH_TIMED_OUT", "GetTimeoutError", Nothing;
    /// No node will do for its task.
    Unschedulable = 12, "TASK_UNSCHEDULABLE_ERROR", "TaskUnschedulableError", Nothing;
    /// No node will do for its actor.
    ActorUnschedulable = 13, "ACTOR_UNSCHEDULABLE_ERROR", "ActorUnschedulableError", Nothing;
    /// It was freed by `internal.free`.
    ObjectFreed = 14, "OBJECT_FREED", "ObjectFreedError", Object;
    /// Neither the store nor the disk has room for it.
    OutOfDisk = 16, "OUT_OF_DISK_ERROR", "OutOfDiskError", Nothing;
    /// Its value is gone, and cannot be made again.
    Unrecoverable = 17, "OBJECT_UNRECONSTRUCTABLE", "ObjectReconstructionFailedError", Object;
    /// The runtime environment of its task or actor could not be made.
    Environment = 18, "RUNTIME_ENV_SETUP_FAILED", "RuntimeEnvSetupError", Nothing;
    /// Its stream ended before it.
    EndOfStream = 19, "END_OF_STREAMING_GENERATOR", "ObjectRefStreamEndOfStreamError", Nothing;
    /// The placement group of its task was removed.
    TaskGroupRemoved = 20, "TASK_PLACEMENT_GROUP_REMOVED", "TaskPlacementGroupRemoved", Nothing;
    /// The placement group of its actor was removed before that began.
    ActorGroupRemoved = 21, "ACTOR_PLACEMENT_GROUP_REMOVED", "ActorPlacementGroupRemoved", Nothing;
}
