//! Lists of nodes, and what each says of its machine.

use std::thread;
use std::time::Instant;

use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{ClusterView, MOST_OF_FILE, ReadFile, Topic, from_node::Body, to_node};

use crate::error::Result;
use crate::machine::{BETWEEN_LOOKS, Figures};
use crate::observer::Question;
use crate::rows::nodes::{NodeRow, Seen};
use crate::session::{Session, topic};

/// Beyond so many nodes, each is asked about itself only when details are wanted: a node
/// connects to every other that it asks.
const FEW_NODES: usize = 64;

/// What a node says of itself.
#[derive(Clone, Default)]
struct Said {
    view: Option<ClusterView>,
    stat: String,
    meminfo: String,
}

impl Session {
    /// Rows of nodes; and what is missing, in sentences.
    pub(crate) fn node_rows(
        &mut self,
        infos: &[NodeInfo],
        detail: bool,
    ) -> Result<(Vec<NodeRow>, Vec<String>)> {
        let alive = infos.iter().filter(|info| info.left.is_empty());
        let mut asked: Vec<u32> = alive.map(|info| info.number).collect();
        if !detail && asked.len() > FEW_NODES {
            asked.clear();
        }
        let (mut said, notes) = self.ask_each(&asked)?;
        let mut figures = self.look(&asked, &said);
        // How busy processors are is seen by two looks, of which one may have been earlier.
        let unknown = |figures: &Option<Figures>| figures.is_some_and(|f| f.cpu_percent.is_none());
        if figures.iter().any(unknown) {
            thread::sleep(BETWEEN_LOOKS);
            self.read_again(&asked, &mut said)?;
            figures = self.look(&asked, &said);
        }
        let rows = infos.iter().map(|info| {
            let at = asked.iter().position(|number| *number == info.number);
            let view = at.and_then(|at| said[at].view.as_ref());
            let figures = at.and_then(|at| figures[at].as_ref());
            NodeRow::of(Seen { info, view, figures })
        });
        Ok((rows.collect(), notes))
    }

    /// What each of these nodes says. Those that do not answer are noted.
    fn ask_each(&mut self, nodes: &[u32]) -> Result<(Vec<Said>, Vec<String>)> {
        let questions = nodes.iter().flat_map(|&node| {
            let view = to_node::Body::Query(topic(Topic::Cluster));
            [view, file("stat"), file("meminfo")].map(|body| Question { node, body })
        });
        let mut said = vec![Said::default(); nodes.len()];
        let failures = self.observer.ask(questions.collect(), |at, body| {
            let said = &mut said[at / 3];
            match body {
                Body::ClusterView(view) => {
                    let more = view.more;
                    said.view.get_or_insert(view);
                    return !more;
                }
                Body::FilePart(part) => {
                    let text = String::from_utf8_lossy(&part.bytes).into_owned();
                    *(if at % 3 == 1 { &mut said.stat } else { &mut said.meminfo }) = text;
                }
                _ => return false,
            }
            true
        })?;
        let notes = failures.into_iter().step_by(3).flatten().map(|error| error.to_string());
        Ok((said, notes.collect()))
    }

    /// Has another look at the processors of those nodes that have answered.
    fn read_again(&mut self, nodes: &[u32], said: &mut [Said]) -> Result<()> {
        let mut answered: Vec<(u32, &mut Said)> = nodes.iter().copied().zip(said).collect();
        answered.retain(|(_, said)| !said.stat.is_empty());
        let question = |(node, _): &(u32, _)| Question { node: *node, body: file("stat") };
        let questions = answered.iter().map(question).collect();
        self.observer.ask(questions, |at, body| match body {
            Body::FilePart(part) => {
                answered[at].1.stat = String::from_utf8_lossy(&part.bytes).into_owned();
                true
            }
            _ => false,
        })?;
        Ok(())
    }

    fn look(&mut self, nodes: &[u32], said: &[Said]) -> Vec<Option<Figures>> {
        let now = Instant::now();
        let look = |(node, said): (&u32, &Said)| {
            let is_known = !said.stat.is_empty();
            is_known.then(|| self.machines.look(*node, &said.stat, &said.meminfo, now))
        };
        nodes.iter().zip(said).map(look).collect()
    }
}

fn file(name: &str) -> to_node::Body {
    let path = format!("machine/{name}");
    to_node::Body::ReadFile(ReadFile { path, most: MOST_OF_FILE, ..ReadFile::default() })
}
