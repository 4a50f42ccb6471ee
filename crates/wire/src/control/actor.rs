//! Actors: making, naming, watching and ending them.

use prost::Message;

use super::{Devices, Shape};

/// Makes an actor.
#[derive(Clone, PartialEq, Message)]
pub struct CreateActor {
    /// Sixteen bytes, chosen by the creator.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Name of the class, for people.
    #[prost(string, tag = "2")]
    pub class_name: String,
    /// Needed to place it.
    #[prost(message, optional, tag = "3")]
    pub placement: Option<Shape>,
    /// Held while it lives: a part of `placement`.
    #[prost(message, optional, tag = "4")]
    pub held: Option<Shape>,
    /// How often it may be started again when its process dies; negative: for ever.
    #[prost(int64, tag = "5")]
    pub max_restarts: i64,
    /// It lives until it is killed: neither its handles nor its creator count.
    #[prost(bool, tag = "6")]
    pub detached: bool,
}

/// Asks for an actor's name, or for the actor of a name.
#[derive(Clone, PartialEq, Message)]
pub struct NamedActor {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Names are apart in each.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Sixteen bytes; none: there is no such actor.
    #[prost(bytes = "vec", tag = "4")]
    pub actor: Vec<u8>,
    /// What a handle needs to know of the class.
    #[prost(bytes = "vec", tag = "5")]
    pub about: Vec<u8>,
    /// Process number of the creator.
    #[prost(uint64, tag = "6")]
    pub creator: u64,
}

/// The names of actors, of one namespace or all.
#[derive(Clone, PartialEq, Message)]
pub struct ActorNames {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Of this namespace alone; empty: of all.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Namespace and name, in turn. In a question: after which to go on.
    #[prost(string, repeated, tag = "3")]
    pub names: Vec<String>,
}

/// Names an actor; `no_restart` is for [`super::to_node::Body::KillActor`].
#[derive(Clone, PartialEq, Message)]
pub struct Actor {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Whether it must stay dead.
    #[prost(bool, tag = "2")]
    pub no_restart: bool,
    /// Why, if it is not the user's wish.
    #[prost(string, tag = "3")]
    pub reason: String,
}

/// From an actor's worker: how its constructor ended.
#[derive(Clone, PartialEq, Message)]
pub struct ActorCreated {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Serialised error, empty when it went well.
    #[prost(bytes = "vec", tag = "2")]
    pub error: Vec<u8>,
}

/// To a worker: become this actor. The creator has its class and arguments.
#[derive(Clone, PartialEq, Message)]
pub struct StartActor {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Devices that go with it.
    #[prost(message, repeated, tag = "3")]
    pub devices: Vec<Devices>,
    /// Process number of the creator.
    #[prost(uint64, tag = "4")]
    pub creator: u64,
    /// Name of the class.
    #[prost(string, tag = "5")]
    pub class_name: String,
    /// How often it was started again.
    #[prost(uint64, tag = "6")]
    pub restarts: u64,
    /// Its creator is gone: its class and arguments were kept.
    #[prost(bool, tag = "7")]
    pub kept: bool,
    /// Its class and arguments are to be kept: it may outlive its creator.
    #[prost(bool, tag = "8")]
    pub keep: bool,
}

/// Where an actor is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum ActorPhase {
    /// Waits for resources, or its constructor runs.
    Pending = 0,
    /// Takes calls.
    Alive = 1,
    /// For good.
    Dead = 2,
    /// Its process died, and it is being started again.
    Restarting = 3,
}

/// State of an actor, to everyone who watches it.
#[derive(Clone, PartialEq, Message)]
pub struct ActorState {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Where it is in its life.
    #[prost(enumeration = "ActorPhase", tag = "2")]
    pub phase: i32,
    /// Its worker, when alive. A channel to it was announced before this.
    #[prost(uint64, tag = "3")]
    pub process: u64,
    /// Why it died, in words.
    #[prost(string, tag = "4")]
    pub reason: String,
    /// Serialised error of its constructor, if that is why.
    #[prost(bytes = "vec", tag = "5")]
    pub creation_error: Vec<u8>,
    /// Operating-system process id of its worker.
    #[prost(uint32, tag = "6")]
    pub pid: u32,
    /// Name of the class.
    #[prost(string, tag = "7")]
    pub class_name: String,
    /// How often it was started again.
    #[prost(uint64, tag = "8")]
    pub restarts: u64,
}
