//! The control service of a node that is the only one.

use oxiray_wire::cluster::{ActorNews, Kv, KvVerb, from_control, to_control};
use oxiray_wire::control::ActorPhase;

use super::bench::join;
use crate::{Alone, Now};

const NOW: Now = Now { ns: 7_000_000_000, wall_ms: 1 };

fn alone() -> Alone {
    Alone::new([4; 16], join(1).node.expect("a node"), NOW)
}

#[test]
fn its_first_word_is_a_welcome_and_then_there_is_peace() {
    let mut alone = alone();
    let answers = alone.hear(NOW);
    let [from_control::Body::Welcome(welcome)] = &answers.messages[..] else { panic!() };
    assert_eq!((welcome.number, welcome.nodes.len()), (Alone::NUMBER, 1));
    assert_eq!(alone.next_wakeup(), None, "nobody asks whether the node is there");
    let later = Now { ns: NOW.ns + 3_600_000_000_000, ..NOW };
    assert!(alone.on_time(later).messages.is_empty(), "and it is not given up");
    assert!(!alone.is_spoken_to());
}

#[test]
fn questions_are_answered_in_order() {
    let mut alone = alone();
    alone.hear(NOW);
    for request in 1..=3 {
        let verb = KvVerb::List.into();
        alone.say(to_control::Body::Kv(Kv { request, verb, ..Kv::default() }));
    }
    let request = |body: &from_control::Body| match body {
        from_control::Body::Kv(answer) => answer.request,
        other => panic!("{other:?}"),
    };
    let answers = alone.hear(NOW);
    assert_eq!(answers.messages.iter().map(request).collect::<Vec<_>>(), [1, 2, 3], "A-1");
}

#[test]
fn a_death_is_acknowledged_whether_it_is_new_or_not() {
    let mut alone = alone();
    alone.hear(NOW);
    let phase = ActorPhase::Dead.into();
    let news = ActorNews { actor: vec![9; 16], phase, ..ActorNews::default() };
    alone.say(to_control::Body::ActorNews(news));
    let [from_control::Body::ActorBuried(actor)] = &alone.hear(NOW).messages[..] else { panic!() };
    assert_eq!(*actor, vec![9; 16]);
}
