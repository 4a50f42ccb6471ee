//! What is kept of a session's end: what the node would have answered to who looks.

use oxiray_node::Event;
use oxiray_wire::control::{
    JobConfig, ProcessKind, Query, Registered, Topic, from_node::Body, to_node,
};

use crate::shell::Shell;

/// What can be listed when nobody is there any more to be asked.
const LISTED: [Topic; 4] = [Topic::Nodes, Topic::Jobs, Topic::Actors, Topic::Processes];
/// Parts of a listing at most, each of a packet.
const MOST_PARTS: usize = 1000;

impl Shell {
    /// Asks what an observer would, and leaves the answers in the session's directory.
    pub(crate) fn record_last(&mut self) {
        if oxiray_session::kept_sessions() == 0 {
            return;
        }
        let pid = std::process::id();
        let Ok(recorder) = self.node.admit(ProcessKind::Observer, pid, JobConfig::default(), 0)
        else {
            return;
        };
        let process = recorder.process;
        let registered = Registered { process: process.0, ..self.shared.registered.clone() };
        let mut all = vec![Body::Registered(registered)];
        for topic in LISTED {
            let mut after = Vec::new();
            for _ in 0..MOST_PARTS {
                let query = Query { topic: topic.into(), after, ..Query::default() };
                self.io.recorded = Some((process, Vec::new()));
                self.event(Event::Message(process, to_node::Body::Query(query)));
                let said = self.io.recorded.take().map(|(_, said)| said).unwrap_or_default();
                after = match said.last() {
                    Some(Body::Listing(part)) => part.next.clone(),
                    _ => Vec::new(),
                };
                all.extend(said);
                if after.is_empty() {
                    break;
                }
            }
        }
        if let Err(error) = self.io.session.record(all) {
            tracing::warn!(%error, "what the session was at its end is not kept");
        }
    }
}
