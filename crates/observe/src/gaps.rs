//! What the history of tasks lacks, in sentences.

use oxiray_events::History;

use crate::rows::{Nodes, hex, ip};

/// One sentence for each node that lost anything: with its machine, for want of room, or because it
/// keeps no more.
pub(crate) fn gaps(history: &History, nodes: &Nodes) -> Vec<String> {
    let gone = nodes.left().filter(|node| node.has_worked).map(|node| {
        // Who looked while it was there has seen most of it.
        let what = match history.has_read(node.number) {
            true => "the last that it recorded of its tasks may have gone with it",
            false => "what it recorded of its tasks went with it",
        };
        format!("{} left the cluster ({}): {what}", nodes.called(node.number), node.left)
    });
    let known = history.nodes();
    let dropped = known.iter().filter_map(|node| {
        let dropped = history.dropped_by(*node)?;
        let (at, mib) = (nodes.called(*node), (dropped.bytes >> 20).max(1));
        Some(format!(
            "{at} has dropped its oldest records of tasks, {mib} MiB so far: it keeps as many as \
             OXIRAY_EVENTS_MAX_BYTES and OXIRAY_EVENTS_MAX_FILES allow"
        ))
    });
    let lost = known.iter().map(|node| (*node, history.lost_by(*node)));
    let unwritten = lost.filter(|(_, count)| *count > 0).map(|(node, count)| {
        let records = if count == 1 { "record of a task" } else { "records of tasks" };
        let at = nodes.called(node);
        format!("{count} {records} could not be written by {at}: its disk was full")
    });
    gone.chain(dropped).chain(unwritten).collect()
}

impl Nodes {
    /// A node in a sentence: `node 10.0.0.2 (3f2a8c0d51be)`; the beginning of an id will do
    /// wherever one is asked for.
    pub(crate) fn called(&self, number: u32) -> String {
        match self.get(number) {
            Some(node) => format!("node {} ({:.12})", ip(node), hex(&node.id)),
            None => format!("node {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use oxiray_events::{EventLog, LocalFiles, Role, TaskKind};
    use oxiray_ids::{ActorId, JobId, ProcessId, TaskId};
    use oxiray_wire::cluster::NodeInfo;

    use super::*;

    fn left(number: u32, has_worked: bool) -> NodeInfo {
        let (address, left) = (format!("10.0.0.{number}:1"), "it was stopped".to_owned());
        NodeInfo { number, id: vec![0xab; 28], address, left, has_worked, ..NodeInfo::default() }
    }

    #[test]
    fn a_node_that_left_is_spoken_of_if_anything_ran_there() {
        let nodes = Nodes::new(vec![left(2, true), left(3, false)]);
        let said = gaps(&History::new(), &nodes);
        assert_eq!(
            said,
            [
                "node 10.0.0.2 (abababababab) left the cluster (it was stopped): what it recorded of \
              its tasks went with it"
            ]
        );
    }

    #[test]
    fn of_a_node_that_was_read_only_the_last_may_be_missing() {
        let dir = std::env::temp_dir().join(format!("oxiray-gaps-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let driver = ProcessId::new(2, 1);
        let id = TaskId::new(ActorId::home(JobId([1, 0, 0, 0]), driver), driver, 1);
        let mut log = EventLog::new(&dir, driver, Role::Driver);
        log.submitted(id, TaskKind::Function, &"work".into(), false, std::iter::empty());
        let mut history = History::new();
        let read = history.update(2, &mut LocalFiles::of_session(&dir));
        std::fs::remove_dir_all(&dir).expect("it is ours");
        read.expect("it can be read");
        let said = gaps(&history, &Nodes::new(vec![left(2, true)]));
        assert!(said[0].contains("the last that it recorded"), "{said:?}");
    }
}
