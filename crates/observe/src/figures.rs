//! What programs count with `util.metrics`: each process writes its figures into a file.

use oxiray_events::Files;
use serde_json::Value;

use crate::error::Result;
use crate::events::NodeFiles;
use crate::session::Session;

/// Longer files are not read: they were not written by us.
const LONGEST: u64 = 4 << 20;
/// More files of a node are not read.
const MOST_FILES: usize = 10_000;
/// Ends the name of a file that is being written.
const UNFINISHED: &str = ".new";

impl Session {
    /// Of each process that counted something: its figures, as `oxiray.util.metrics` wrote them,
    /// and `node_id`. And what is missing, in sentences.
    pub fn figures(&mut self) -> Result<(Vec<Value>, Vec<String>)> {
        let nodes = self.members()?;
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        for node in nodes.alive() {
            let mut files =
                NodeFiles::in_folder(&mut self.observer, &self.dir, node.number, "metrics");
            let id: String = node.id.iter().map(|byte| format!("{byte:02x}")).collect();
            match read(&mut files) {
                Ok(read) => found.extend(read.into_iter().map(|mut figures| {
                    figures["node_id"] = id.clone().into();
                    figures
                })),
                Err(error) => {
                    notes.push(format!(
                        "the metrics of node {} cannot be read: {error}",
                        node.number
                    ));
                }
            }
        }
        Ok((found, notes))
    }
}

/// What is no JSON object is left out: anybody who is the user can write into the folder.
fn read(files: &mut dyn Files) -> std::io::Result<Vec<Value>> {
    let mut found = Vec::new();
    for file in files.list()?.into_iter().take(MOST_FILES) {
        if file.name.ends_with(UNFINISHED) || file.size > LONGEST {
            continue;
        }
        let mut bytes = Vec::new();
        loop {
            let more = files.read(&file.name, bytes.len() as u64, LONGEST as usize)?;
            if more.is_empty() || bytes.len() as u64 > LONGEST {
                break;
            }
            bytes.extend_from_slice(&more);
        }
        let parsed = serde_json::from_slice::<Value>(&bytes).ok();
        found.extend(parsed.filter(Value::is_object));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use oxiray_events::LocalFiles;

    use super::*;

    #[test]
    fn what_is_not_whole_or_not_ours_is_left_out() {
        let dir = std::env::temp_dir().join(format!("oxiray-figures-{}", std::process::id()));
        let mut files = LocalFiles::in_folder(&dir, "metrics");
        assert!(read(&mut files).unwrap().is_empty(), "there is no such folder");
        fs::create_dir_all(dir.join("metrics")).unwrap();
        for (name, text) in [
            ("a", r#"{"pid": 1}"#),
            ("b.new", r#"{"pid": 2}"#),
            ("c", r#"{"pid": "#),
            ("d", "[1, 2]"),
        ] {
            fs::write(dir.join("metrics").join(name), text).unwrap();
        }
        let found = read(&mut files);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found.unwrap(), [serde_json::json!({"pid": 1})]);
    }
}
