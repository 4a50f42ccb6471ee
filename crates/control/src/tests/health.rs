//! Members that say nothing: H-1, H-2.

use oxiray_wire::cluster::{HealthConfig, Ping, Pong, from_control, to_control};
use oxiray_wire::control::{Empty, Text, to_node};

use super::bench::{Bench, actor, creation, join, process};
use super::world::Asked;
use crate::{Event, Health, PeerId};

/// Ray's defaults.
const USUAL: HealthConfig = HealthConfig {
    initial_delay_ms: 5_000,
    period_ms: 3_000,
    timeout_ms: 10_000,
    failure_threshold: 5,
};

/// Two members, of which the first answers.
struct Silence {
    bench: Bench,
    silent_ms: u64,
}

impl Silence {
    fn new(wanted: HealthConfig) -> Self {
        let mut bench = Bench::new();
        bench.control.set_health(Health::new(&wanted).expect("makes sense"));
        bench.join(1);
        bench.join(2);
        Self { bench, silent_ms: 0 }
    }

    /// They have been there for a while, and the second was heard just now.
    fn settled() -> Self {
        let mut silence = Self::new(USUAL);
        for _ in 0..50 {
            silence.until(100);
            silence.bench.say(2, to_control::Body::Pong(Pong::default()));
            silence.silent_ms = 0;
        }
        silence
    }

    /// Time passes in small steps until so long nothing was heard of the second.
    fn until(&mut self, ms: u64) -> Vec<Asked> {
        let mut asked = Vec::new();
        while self.silent_ms < ms {
            self.silent_ms += 50;
            asked.push(self.bench.tick(50));
            self.bench.say(1, to_control::Body::Pong(Pong::default()));
        }
        asked
    }

    fn is_member(&mut self) -> bool {
        let nodes = self.bench.see().nodes;
        nodes.iter().any(|info| info.number == 2 && info.left.is_empty())
    }
}

fn given_up(asked: &[Asked], peer: u64) -> Option<&str> {
    asked.iter().flat_map(|asked| asked.to(peer)).find_map(|body| match body {
        from_control::Body::GivenUp(Text { text }) => Some(&text[..]),
        _ => None,
    })
}

/// Whether the first was told that the second is suspect, the last time it was told of it.
fn suspected(asked: &[Asked]) -> Option<bool> {
    let mut said = asked.iter().flat_map(|asked| asked.to(1)).filter_map(|body| match body {
        from_control::Body::Loads(loads) => loads.loads.iter().find(|load| load.node == 2),
        _ => None,
    });
    said.next_back().map(|load| load.suspect)
}

/// H-1.
#[test]
fn who_says_nothing_for_a_period_is_suspect_until_it_is_heard() {
    let mut silence = Silence::settled();
    assert_eq!(suspected(&silence.until(2_900)), None);
    assert_eq!(suspected(&silence.until(3_500)), Some(true));
    let id = |counter| actor(process(1, 5), counter);
    for counter in 1..=10 {
        let made = silence.bench.create(creation(id(counter), 0)).made_at();
        assert_eq!(made, Some(1), "nothing new goes there");
    }
    let heard = silence.bench.say(2, to_control::Body::Pong(Pong::default()));
    assert_eq!(suspected(&[heard]), Some(false));
    let made = (11..=30).map(|counter| silence.bench.create(creation(id(counter), 0)).made_at());
    assert!(made.collect::<Vec<_>>().contains(&Some(2)), "it is as good as others");
}

/// H-2, and what it hears then; when it comes back, it is another.
#[test]
fn who_says_nothing_for_all_checks_is_given_up() {
    let mut silence = Silence::settled();
    silence.until(21_900);
    assert!(silence.is_member());
    let asked = silence.until(22_500);
    assert!(!silence.is_member());
    assert!(given_up(&asked, 2).expect("is told").contains("nothing was heard of it for 22 s"));
    let mut again = join(2);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 2;
    let asked = silence.bench.say(3, to_control::Body::Join(again));
    assert!(
        given_up(&[asked], 3).expect("is told").contains("a node that comes back is a new node")
    );
    let asked = silence.bench.say(4, to_control::Body::Join(join(2)));
    let from_control::Body::Welcome(welcome) = asked.to(4)[0] else { panic!() };
    assert_eq!(welcome.number, 3);
}

/// H-2: not in its first moments.
#[test]
fn a_new_member_is_not_judged_at_once() {
    let soon = HealthConfig { period_ms: 100, timeout_ms: 100, failure_threshold: 2, ..USUAL };
    let mut silence = Silence::new(soon);
    silence.until(5_100);
    assert!(silence.is_member());
    silence.until(5_400);
    assert!(!silence.is_member());
}

/// H-2, H-3: that its connection breaks of silence is not its end; that it closes is.
#[test]
fn a_connection_that_breaks_of_silence_is_no_end() {
    let mut silence = Silence::settled();
    silence.until(11_000);
    silence.bench.event(Event::Broken(PeerId(2)));
    assert!(silence.is_member());
    let mut again = join(2);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 2;
    let asked = silence.bench.say(5, to_control::Body::Join(again));
    assert!(matches!(asked.to(5)[0], from_control::Body::Welcome(_)));
    assert_eq!(suspected(&[asked]), Some(false));
    silence.bench.event(Event::Closed(PeerId(5)));
    assert!(!silence.is_member());
}

/// H-3: its machine has no more of a connection that it gave up, and says so when it can.
#[test]
fn a_connection_that_closes_after_a_silence_is_no_end() {
    let mut silence = Silence::settled();
    silence.until(11_000);
    silence.bench.event(Event::Closed(PeerId(2)));
    assert!(silence.is_member());
    silence.until(22_500);
    assert!(!silence.is_member());
}

/// H-3: what it said before comes late, and all at once.
#[test]
fn a_connection_that_the_member_gave_up_is_no_end() {
    let mut silence = Silence::settled();
    silence.until(6_000);
    silence.bench.say(2, to_control::Body::Pong(Pong::default()));
    let asked = silence.bench.say(2, to_control::Body::Parting(Empty {}));
    assert_eq!(asked.closed, [PeerId(2)]);
    silence.bench.event(Event::Closed(PeerId(2)));
    assert!(silence.is_member());
}

#[test]
fn who_is_not_back_after_its_connection_broke_is_given_up_when_it_would_have_been() {
    let mut silence = Silence::settled();
    silence.until(11_000);
    silence.bench.event(Event::Broken(PeerId(2)));
    silence.until(21_900);
    assert!(silence.is_member());
    silence.until(22_500);
    assert!(!silence.is_member());
}

/// H-5: it hears what was heard of it, and has a lease that ends before it is given up.
#[test]
fn a_question_names_the_last_mark_that_was_heard() {
    let mut silence = Silence::new(USUAL);
    let mut heard = |marks: &[u64]| {
        for &mark in marks {
            silence.bench.say(2, to_control::Body::Pong(Pong { mark, answers: 0 }));
        }
        let asked = silence.bench.tick(500);
        asked.to(2).into_iter().find_map(|body| match body {
            from_control::Body::Ping(Ping { heard, .. }) => Some(*heard),
            _ => None,
        })
    };
    assert_eq!(heard(&[]), Some(0));
    assert_eq!(heard(&[7]), Some(7));
    assert_eq!(heard(&[]), Some(7));
    assert_eq!(heard(&[9, 8]), Some(9), "what comes late is not the last");
}

/// C-3: a watch that was passed on over a connection that was lost is passed on again; but one that
/// came before a question that was answered is not.
#[test]
fn a_watch_that_may_be_lost_is_passed_on_again() {
    let mut silence = Silence::settled();
    let id = actor(process(1, 5), 1);
    silence.bench.create(creation(id, 0)).made_at();
    let there = (1..)
        .map(|counter| actor(process(1, 5), counter))
        .find(|id| silence.bench.create(creation(*id, 0)).made_at() == Some(2));
    let there = there.expect("some are made there");
    let watches = |asked: &Asked, peer| {
        let is_watch = |body: &&from_control::Body| matches!(body, from_control::Body::OfProcess(said) if matches!(said.message.as_ref().and_then(|message| message.body.as_ref()), Some(to_node::Body::WatchActor(_))));
        asked.to(peer).into_iter().filter(is_watch).count()
    };
    for (round, answers, expected) in [(3, 0, 1), (4, u64::MAX, 0)] {
        let watcher = process(1, 6 + round as u32);
        let peer = if round == 3 { 2 } else { 3 };
        assert_eq!(watches(&silence.bench.watch(watcher, there), peer), 1);
        silence.bench.say(peer, to_control::Body::Pong(Pong { mark: 0, answers }));
        let mut again = join(2);
        again.cluster = vec![3; 16];
        again.node.as_mut().unwrap().number = 2;
        again.actors = vec![there.0.to_vec()];
        let asked = silence.bench.say(round, to_control::Body::Join(again));
        assert_eq!(watches(&asked, round), expected, "{round}");
        silence.bench.say(round, to_control::Body::Pong(Pong { mark: 0, answers: u64::MAX }));
    }
}

/// H-5, for any thresholds: between two answers that are known of there are two questions.
#[test]
fn a_lease_is_shorter_than_patience_and_longer_than_it_takes_to_hear_of_it() {
    for (period_ms, timeout_ms, failure_threshold) in
        [(3_000, 10_000, 5), (500, 1_500, 4), (500, 500, 3), (1_000, 1_001, 1), (1, 1, 2)]
    {
        let wanted = HealthConfig { period_ms, timeout_ms, failure_threshold, ..USUAL };
        let health = Health::new(&wanted).expect("makes sense");
        assert!(health.lease() < health.given_up_after(), "{health:?}");
        assert!(health.lease() > 3 * health.ask_every(), "{health:?}");
    }
    let usual = Health::default();
    assert_eq!((usual.lease(), usual.given_up_after()), (19_000_000_000, 22_000_000_000));
}

/// H-5: who was promised more has that, also from a control service that was started again with other
/// thresholds.
#[test]
fn a_member_is_not_given_up_before_it_was_promised() {
    let soon = HealthConfig { period_ms: 100, timeout_ms: 100, failure_threshold: 2, ..USUAL };
    let mut silence = Silence::settled();
    silence.bench.restart();
    silence.bench.control.set_health(Health::new(&soon).expect("makes sense"));
    silence.silent_ms = 0;
    silence.until(21_900);
    assert!(silence.is_member());
    silence.until(22_500);
    assert!(!silence.is_member());
}

#[test]
fn who_was_removed_by_hand_may_not_come_back_by_itself() {
    let mut silence = Silence::settled();
    silence.bench.say(9, to_control::Body::Remove(Text { text: "0202".into() }));
    let mut again = join(2);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 2;
    let asked = silence.bench.say(3, to_control::Body::Join(again));
    assert!(asked.refusal(3).contains("a new node"));
}

#[test]
fn thresholds_that_make_no_sense_are_refused_in_a_sentence() {
    let why = |wanted: HealthConfig| Health::new(&wanted).expect_err("is refused");
    assert_eq!(
        why(HealthConfig { period_ms: 0, ..USUAL }),
        "health_check_period_ms must be from 1 to 86400000, not 0"
    );
    let none = why(HealthConfig { failure_threshold: 0, ..USUAL });
    assert!(none.starts_with("health_check_failure_threshold must be from 1 to 1000, not 0"));
    let hasty = why(HealthConfig { timeout_ms: 100, failure_threshold: 1, ..USUAL });
    assert!(hasty.contains("contradict health_check_period_ms=3000"), "{hasty}");
    assert!(Health::new(&USUAL).is_ok_and(|health| health == Health::default()));
}
