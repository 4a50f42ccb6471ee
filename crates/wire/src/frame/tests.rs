//! Frames go both ways, and random bytes never do harm.

use oxiray_ids::{ActorId, FunctionId, ObjectId, Origin, ProcessId, StoreKey, TaskId};
use proptest::prelude::*;

use super::*;

fn object_id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 28]>().prop_map(ObjectId)
}

fn names() -> impl Strategy<Value = Vec<RefName>> {
    let name = (object_id(), any::<u64>());
    prop::collection::vec(
        name.prop_map(|(id, owner)| RefName { id, owner: ProcessId(owner) }),
        0..4,
    )
}

#[derive(Debug, Clone)]
enum OwnedBody {
    Inline(Vec<u8>),
    Stored(u32, u64, u64),
    Failed(String, Vec<u8>),
}

fn body() -> impl Strategy<Value = OwnedBody> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(OwnedBody::Inline),
        any::<(u32, u64, u64)>().prop_map(|(node, key, len)| OwnedBody::Stored(node, key, len)),
        any::<(String, Vec<u8>)>().prop_map(|(text, data)| OwnedBody::Failed(text, data)),
    ]
}

impl OwnedBody {
    fn as_body(&self) -> Body<'_> {
        match self {
            OwnedBody::Inline(bytes) => Body::Inline(bytes),
            OwnedBody::Stored(node, key, len) => {
                let origin = Origin { node: *node, key: StoreKey(*key) };
                Body::Stored { origin, len: *len }
            }
            OwnedBody::Failed(message, data) => {
                Body::Failed { code: FailureCode::WorkerCrashed, message, data }
            }
        }
    }
}

fn returns() -> impl Strategy<Value = Returns> {
    prop_oneof![
        (0..1u32 << 31).prop_map(Returns::Fixed),
        (0..1u32 << 30).prop_map(|ahead| Returns::Stream { ahead }),
        Just(Returns::Gathered),
    ]
}

fn round_trip(frame: Frame<'_>) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    // By their words: what was decoded does not live as long as what it is compared with.
    let decoded = Frame::decode(&bytes).expect("just encoded");
    assert_eq!(format!("{decoded:?}"), format!("{frame:?}"));
    drop(decoded);
    // Every prefix is refused, none panics.
    for len in 0..bytes.len() {
        let _ = Frame::decode(&bytes[..len]);
    }
    if !matches!(frame, Frame::Function(..) | Frame::Constructor(..)) {
        bytes.push(0);
        assert!(Frame::decode(&bytes).is_err());
    }
}

proptest! {
    #[test]
    fn tasks_and_answers_go_both_ways(
        token: u64, number: u64, lane: u16, incarnation: u64, id: [u8; 24], function: [u8; 16], name: String,
        returns in returns(), attempt: u16, recorded: bool, devices: Vec<u32>, args: Vec<u8>,
        bodies in prop::collection::vec((body(), names()), 0..4),
        nested in names(), retained in prop::collection::vec(object_id(), 0..4),
    ) {
        let values: Values<'_> = bodies
            .iter()
            .map(|(body, contained)| Value { body: body.as_body(), contained: contained.clone() })
            .collect();
        round_trip(Frame::Task(Task {
            token, number, lane, incarnation, id: TaskId(id), function: FunctionId(function),
            name: &name, returns, attempt, recorded, devices, args: &args, values: values.clone(), nested,
        }));
        for (item, value) in (1..).zip(&values) {
            round_trip(Frame::Yield(Yield { token, item, value: value.clone() }));
        }
        round_trip(Frame::Answer(Answer {
            token, outcome: Outcome::Retryable, ran_ns: number, values, retained,
        }));
    }

    #[test]
    fn small_frames_go_both_ways(id in object_id(), token: u64, payload: Vec<u8>) {
        round_trip(Frame::WantObject(id));
        round_trip(Frame::Borrow(id));
        round_trip(Frame::Borrowed(id));
        round_trip(Frame::Release(id));
        round_trip(Frame::SettledArgs(token));
        round_trip(Frame::SettledReturns(token, token as u32));
        round_trip(Frame::Consumed(token, token as u32));
        round_trip(Frame::NoReader(token));
        round_trip(Frame::WantFunction(FunctionId([7; 16])));
        round_trip(Frame::Function(FunctionId([7; 16]), &payload));
        round_trip(Frame::TakeBack(token));
        round_trip(Frame::TakenBack(token));
        round_trip(Frame::Blocked);
        round_trip(Frame::Unblocked);
        round_trip(Frame::ActorUnreferenced(ActorId([3; 16])));
        round_trip(Frame::WantConstructor(ActorId([3; 16])));
        round_trip(Frame::Constructor(ActorId([3; 16]), &payload));
    }

    #[test]
    fn random_bytes_are_refused_or_read_but_never_panic(bytes: Vec<u8>) {
        let _ = Frame::decode(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_true_kind_never_panic(kind in 0u8..28, mut bytes: Vec<u8>) {
        bytes.insert(0, kind);
        let _ = Frame::decode(&bytes);
    }
}
