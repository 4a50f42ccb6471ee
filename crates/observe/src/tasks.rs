//! Lists of tasks: of a million, only those that are shown become rows.

use oxiray_events::texts::TextPlace;
use oxiray_events::{State, Task};
use oxiray_ids::TaskId;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::events::Texts;
use crate::query::{Page, Query, total};
use crate::resource::Resource;
use crate::row::{Cell, together};
use crate::rows::tasks::{TaskDetail, TaskRow, TaskType, attempts, failed};
use crate::session::Session;

/// Of so many attempts, the last, it is read why they failed.
const MOST_TOLD: usize = 100;

impl Session {
    /// Gives the tasks that meet a query, one after the other; the newest first, unless it says
    /// otherwise. The page has no rows: a million at once are gigabytes.
    pub(crate) fn each_task<E: From<Error>>(
        &mut self,
        query: &Query,
        mut take: impl FnMut(Value) -> std::result::Result<(), E>,
    ) -> std::result::Result<Page, E> {
        let nodes = self.members()?;
        let mut notes = self.update_history()?;
        let Self { observer, dir, history, .. } = self;
        let mut texts = Texts::new(observer, dir);
        let mut found: Vec<Task<'_>> = history
            .tasks()
            .filter(|task| {
                query.admits(Resource::Tasks, |column| TaskRow::cell(task, &nodes, column))
            })
            .collect();
        if query.sort.is_none() {
            found.sort_by_cached_key(|task| std::cmp::Reverse(task.submitted_ns()));
        }
        let (filtered, found) =
            query.part(found, |task, column| TaskRow::cell(task, &nodes, column));
        for task in found {
            let row = TaskRow::of(&task, &nodes);
            if !query.detail {
                take(row.json())?;
                continue;
            }
            let mut detail = TaskDetail::of(&task);
            detail.error_message = failure_place(&task).and_then(|place| texts.read(place));
            take(together(&row, &detail))?;
        }
        notes.extend(texts.missing);
        Ok(Page { total: history.len(), filtered, rows: Vec::new(), notes })
    }

    /// Everything about one task, by its id or the beginning of it, or by the id of what it
    /// returns.
    pub(crate) fn get_task(&mut self, id: &str) -> Result<Option<Value>> {
        let nodes = self.members()?;
        let mut missing = self.update_history()?;
        let exact = TaskId::from_hex(id).or_else(|| TaskId::from_hex(id.get(..2 * TaskId::LEN)?));
        let found = match exact {
            Some(exact) => self.history.get(exact),
            None => self.task_beginning(id)?,
        };
        let Some(task) = found else {
            self.missing = missing;
            return Ok(None);
        };
        let (row, mut detail) = (TaskRow::of(&task, &nodes), TaskDetail::of(&task));
        let (place, id, waits) = (failure_place(&task), task.id(), !task.state().is_end());
        let places: Vec<_> = attempts(&task).iter().map(|tried| failed(tried)?.text).collect();
        detail.error_message = place.and_then(|place| self.text(place));
        let told = places.len().saturating_sub(MOST_TOLD);
        for (at, place) in places.into_iter().enumerate().skip(told) {
            detail.attempts[at].error_message = place.and_then(|place| self.text(place));
        }
        if waits {
            let reasons = self.why(&id.to_string())?;
            detail.why = reasons.into_iter().next();
            missing.append(&mut self.missing);
            missing.sort();
            missing.dedup();
        }
        self.missing = missing;
        Ok(Some(together(&row, &detail)))
    }

    /// Tasks by name, and how many are how far.
    pub(crate) fn summarise_tasks(&mut self) -> Result<Value> {
        self.missing = self.update_history()?;
        let rows: Vec<Value> = self
            .history
            .summary()
            .iter()
            .map(|group| {
                let states = State::ALL.iter().zip(group.states).filter(|(_, count)| *count > 0);
                let states = states.map(|(state, count)| (state.as_str().to_owned(), count.into()));
                let states: Map<String, Value> = states.collect();
                json!({ "name": group.name, "type": TaskType::from(group.kind).word(), "states": states })
            })
            .collect();
        Ok(json!({ "rows": rows, "total": total(&rows) }))
    }
}

fn failure_place(task: &Task<'_>) -> Option<TextPlace> {
    failed(&task.newest())?.text
}
