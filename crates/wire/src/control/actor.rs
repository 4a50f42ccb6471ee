//! Actors: making, naming, watching and ending them.

use prost::Message;

use super::{Devices, Shape};
use crate::frame::FailureCode;

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
    /// The control service has its class and arguments, and nobody needs to ask the creator.
    #[prost(bool, tag = "7")]
    pub kept: bool,
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
    /// Its class and arguments were kept; they are not asked of the creator, who may be gone.
    #[prost(bool, tag = "7")]
    pub kept: bool,
    /// Its class and arguments are to be kept: it may outlive its creator.
    #[prost(bool, tag = "8")]
    pub keep: bool,
    /// The worker has worked before, and is asked: answered with [`StartAnswer`].
    #[prost(bool, tag = "9")]
    pub asks: bool,
    /// Eighteen bytes: the placement group that it is in; none: in none.
    #[prost(bytes = "vec", tag = "11")]
    pub group: Vec<u8>,
    /// What it submits is to be within that group, too.
    #[prost(bool, tag = "10")]
    pub capture: bool,
    /// For numerical libraries: see [`threads_of`](super::threads_of).
    #[prost(uint32, tag = "12")]
    pub threads: u32,
    /// It ends when its node's lease does: it may be started again elsewhere.
    #[prost(bool, tag = "13")]
    pub fenced: bool,
    /// Which of its stays at nodes this is of: see [`incarnation`].
    #[prost(uint32, tag = "14")]
    pub stay: u32,
}

impl StartActor {
    /// Which incarnation the worker is to be.
    pub fn incarnation(&self) -> u64 {
        incarnation(self.stay, self.restarts)
    }
}

/// From a worker that was asked to become an actor.
#[derive(Clone, PartialEq, Message)]
pub struct StartAnswer {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Others hold what it owns, and would lose it with the actor: it takes tasks as before.
    #[prost(bool, tag = "2")]
    pub declined: bool,
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

/// First byte of a `creation_error` that is no constructor's: then follow the failure's code and its
/// words. What constructors raise is pickled, and begins with another byte.
const UNMADE_MARK: u8 = 1;

/// The `creation_error` of an actor that was never begun, for this reason.
pub fn unmade(code: FailureCode, reason: &str) -> Vec<u8> {
    let mut error = vec![UNMADE_MARK, code as u8];
    error.extend_from_slice(reason.as_bytes());
    error
}

/// Why an actor was never begun, if that is what its `creation_error` says.
pub fn why_unmade(creation_error: &[u8]) -> Option<(FailureCode, &str)> {
    let (&code, reason) = creation_error.strip_prefix(&[UNMADE_MARK])?.split_first()?;
    Some((FailureCode::from_u8(code)?, std::str::from_utf8(reason).ok()?))
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
    /// Serialised error of its constructor, or [`unmade`], if that is why.
    #[prost(bytes = "vec", tag = "5")]
    pub creation_error: Vec<u8>,
    /// Operating-system process id of its worker.
    #[prost(uint32, tag = "6")]
    pub pid: u32,
    /// Name of the class.
    #[prost(string, tag = "7")]
    pub class_name: String,
    /// How often it was started again, as far as is known. Of one that is being started, with that
    /// time; `u64::MAX`: it is dead, whichever incarnation was the last.
    #[prost(uint64, tag = "8")]
    pub restarts: u64,
    /// What its calls fail with: the number of a failure; 0: it died.
    #[prost(uint32, tag = "9")]
    pub failure: u32,
    /// Which of its stays at nodes this is news of: see [`incarnation`].
    #[prost(uint32, tag = "10")]
    pub stay: u32,
}

/// The number of an incarnation: the later, the higher. First comes which of its *stays* the actor
/// is in: the control service counts them, and begins another when it takes the actor from a node.
/// Then how often the actor was started again, which its node counts. So nothing that a node says of
/// its stay, heard by the control service or not, is newer than what is said of the next one.
pub fn incarnation(stay: u32, restarts: u64) -> u64 {
    u32::try_from(restarts).map_or(u64::MAX, |restarts| u64::from(stay) << 32 | u64::from(restarts))
}

impl ActorState {
    /// Which incarnation this is news of.
    pub fn incarnation(&self) -> u64 {
        incarnation(self.stay, self.restarts)
    }

    /// What its calls fail with, if it is not that it died.
    pub fn failure_code(&self) -> Option<FailureCode> {
        let number = u8::try_from(self.failure).ok().filter(|number| *number != 0);
        number.and_then(FailureCode::from_u8)
    }
}

#[cfg(test)]
mod tests {
    use super::incarnation;

    #[test]
    fn a_stay_is_newer_than_all_of_the_one_before() {
        let most = u64::from(u32::MAX);
        for stay in [0, 1, 7, u32::MAX - 1] {
            assert!(incarnation(stay, 0) < incarnation(stay, 1));
            assert!(incarnation(stay, most) < incarnation(stay + 1, 0));
            assert!(
                incarnation(stay, most) < incarnation(stay, u64::MAX),
                "whichever was the last"
            );
        }
    }
}
