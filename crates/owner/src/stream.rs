//! Streams: what tasks yield one at a time, and who reads it.
//!
//! An item is an object of its task like a return. It is known by its id, which every attempt of
//! the task gives to the same item. The reader takes items in order; what it has not taken the
//! stream holds, one count each. Who waits for an item that has not come waits for its object,
//! which is then there without a value, as with any other.
//!
//! - **Y-1** Every item is given to the reader once and in order, however often its task is tried.
//! - **Y-2** A worker is told how far the reader is when it could not go on without: it is never
//!   further ahead than it may be, and never waits for what was read.
//! - **Y-3** A stream that nobody reads holds nothing, and its worker makes no more of it, but for
//!   items that somebody holds and that were lost: those are made again on the way.
//! - **Y-4** When a stream has ended, whatever was to come of it has a value or a failure.
//! - **Y-5** An item that was lost does not wait for the end of its stream, which may wait for who
//!   waits for the item: an attempt that has yielded it already is stopped, and followed by another.
//! - **Y-6** What a task returns has references to all that the attempt yielded which returned it, and
//!   none of those is let go before, known from an earlier run or not.

use std::collections::VecDeque;

use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_wire::frame::{Body, FailureCode, Frame, MOST_ITEMS, Returns, Yield, item_object};
use smallvec::smallvec;

use crate::lineage::Gone;
use crate::object::{Content, Object, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{Contents, Place, ReturnKeys, Target, TaskKey};

/// What a reader gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This item, counted once.
    Item(ObjectKey),
    /// It has not come.
    NotYet,
    /// There are no more.
    End,
}

/// Who takes the items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reader {
    Nobody,
    Program,
    /// The value that the task returns has the references to them.
    Answer,
}

pub(crate) struct Stream {
    reader: Reader,
    /// The task, while it is under way.
    task: Option<TaskKey>,
    /// Items that the worker may be ahead; 0: any number.
    limit: u32,
    /// Items that there are so far.
    made: u32,
    /// Of those, given to the reader.
    taken: u32,
    /// Those after that, one count each; then what is waited for and has not come.
    ahead: VecDeque<ObjectKey>,
    /// There will be no more, whatever another run yields.
    ended: bool,
    /// Items that were lost and that this run makes again, one count each.
    lost: Vec<ObjectKey>,
    /// Of the attempt that runs: what it yielded,
    yielded: u32,
    /// how many of those it was told were read,
    told: u32,
    /// and whether it was told that nobody reads.
    told_no_reader: bool,
}

impl Stream {
    fn new(reader: Reader, task: TaskKey, limit: u32) -> Self {
        Self {
            reader,
            task: Some(task),
            limit,
            made: 0,
            taken: 0,
            ahead: VecDeque::new(),
            ended: false,
            lost: Vec::new(),
            yielded: 0,
            told: 0,
            told_no_reader: false,
        }
    }

    /// What is waited for and has not come.
    fn awaited(&self) -> Vec<ObjectKey> {
        self.ahead.iter().skip((self.made - self.taken) as usize).copied().collect()
    }
}

/// Which item of its stream an object is.
fn item_of(id: ObjectId) -> u32 {
    id.index().saturating_sub(1)
}

fn end_of_stream() -> Content {
    Content::failed(FailureCode::EndOfStream, "the stream ended before this item")
}

impl Owner {
    pub(crate) fn is_stream(&self, key: TaskKey) -> bool {
        !matches!(self.tasks[key.0 as usize].spec.returns, Returns::Fixed(_))
    }

    /// A task that yields was submitted.
    pub(crate) fn open_stream(&mut self, key: TaskKey) {
        let spec = &self.tasks[key.0 as usize].spec;
        let stream = match spec.returns {
            Returns::Fixed(_) => return,
            Returns::Stream { ahead } => Stream::new(Reader::Program, key, ahead),
            Returns::Gathered => Stream::new(Reader::Answer, key, 0),
        };
        self.streams.insert(spec.id, stream);
    }

    /// It is run again, for items that were lost. Where the answer has the references, the run is
    /// like the first (Y-6): only its end says which those are.
    pub(crate) fn reopen_stream(&mut self, key: TaskKey, made: u32, lost: Vec<ObjectKey>) {
        let spec = &self.tasks[key.0 as usize].spec;
        let stream = self.streams.entry(spec.id).or_insert_with(|| match spec.returns {
            Returns::Stream { ahead } => {
                Stream { made, taken: made, ended: true, ..Stream::new(Reader::Nobody, key, ahead) }
            }
            Returns::Gathered | Returns::Fixed(_) => Stream::new(Reader::Answer, key, 0),
        });
        stream.task = Some(key);
        for item in &lost {
            self.objects[item.index()].maker = Some(key);
        }
        stream.lost = lost;
    }

    /// An attempt is about to begin, and yields from the first item on.
    pub(crate) fn begin_stream(&mut self, key: TaskKey) {
        let id = self.tasks[key.0 as usize].spec.id;
        if let Some(stream) = self.streams.get_mut(&id) {
            (stream.yielded, stream.told, stream.told_no_reader) = (0, 0, false);
        }
    }

    /// A worker yields an item.
    pub fn on_yield(&mut self, peer: ProcessId, given: Yield<'_>, out: &mut impl Outbox) {
        let key = self.task_of(peer, given.token);
        let task = key.map(|key| self.tasks[key.0 as usize].spec.id);
        let Some((key, task)) = key.zip(task).filter(|(_, task)| self.streams.contains_key(task))
        else {
            return Self::decline(peer, &given, out);
        };
        let Yield { token, item, value } = given;
        match self.place_for(task, item) {
            None => Self::decline(peer, &Yield { token, item, value }, out),
            Some(known) => {
                let content = Content::from_body(&value.body);
                if let Content::Stored { origin, .. } = content {
                    out.take_stored(origin);
                }
                let values = std::slice::from_ref(&value);
                let contained = self.receive_contained(peer, token, item, values, out).pop();
                let object = known.unwrap_or_else(|| self.add_item(task, item, Some(key)));
                self.fill(object, content, contained.unwrap_or_default(), out);
            }
        }
        self.tell_worker(task, out);
    }

    /// Where an item goes that was yielded: to an object that waits for it, to a new one, or
    /// nowhere (Y-1).
    fn place_for(&mut self, task: TaskId, item: u32) -> Option<Option<ObjectKey>> {
        let stream = self.streams.get_mut(&task)?;
        stream.yielded = stream.yielded.max(item);
        if (1..=stream.made).contains(&item) {
            let known = self.by_id.get(&item_object(task, item)).copied()?;
            return self.content(known).is_none().then_some(Some(known));
        }
        let is_next = item == stream.made + 1 && item <= MOST_ITEMS;
        if !is_next || stream.ended || stream.reader == Reader::Nobody {
            return None;
        }
        stream.made = item;
        if let Some(awaited) = stream.ahead.get((item - stream.taken - 1) as usize) {
            return Some(Some(*awaited));
        }
        let Some(known) = self.by_id.get(&item_object(task, item)).copied() else {
            return Some(None);
        };
        // Of a run before (Y-6).
        stream.ahead.push_back(known);
        self.add_ref(known);
        self.content(known).is_none().then_some(Some(known))
    }

    /// Lets go of an item that nobody needs.
    fn decline(peer: ProcessId, given: &Yield<'_>, out: &mut impl Outbox) {
        let Yield { token, item, value } = given;
        Self::decline_contained(peer, *token, *item, std::slice::from_ref(value), out);
        if let Body::Stored { origin, .. } = value.body {
            out.free_stored(origin);
        }
    }

    /// The object of the next item that the stream holds, without a value.
    fn add_item(&mut self, task: TaskId, item: u32, maker: Option<TaskKey>) -> ObjectKey {
        let mut object = Object::new(item_object(task, item), None);
        object.maker = maker;
        let key = self.insert(object);
        self.name(key);
        if let Some(stream) = self.streams.get_mut(&task) {
            stream.ahead.push_back(key);
        }
        key
    }

    /// Tells the worker of a stream what it has to know to go on, or to stop (Y-2, Y-3).
    fn tell_worker(&mut self, task: TaskId, out: &mut impl Outbox) {
        let Some(stream) = self.streams.get(&task) else { return };
        if stream.limit == 0 && stream.reader != Reader::Nobody && stream.lost.is_empty() {
            return;
        }
        let missing = stream.lost.iter().filter(|key| self.content(**key).is_none());
        let lost = missing.map(|key| item_of(self.objects[key.index()].id)).max();
        let read = stream.taken.max(lost.unwrap_or(0));
        let is_deserted = stream.reader == Reader::Nobody && lost.is_none();
        let is_over = is_deserted || self.is_to_restart(stream);
        let stops = is_over && stream.yielded > 0 && !stream.told_no_reader;
        let waits = stream.limit > 0 && stream.yielded.saturating_sub(stream.told) >= stream.limit;
        let goes_on = !is_over && waits && read > stream.told;
        let Some((peer, token)) =
            stream.task.filter(|_| stops || goes_on).and_then(|key| self.worker_of(key))
        else {
            return;
        };
        let Some(stream) = self.streams.get_mut(&task) else { return };
        if stops {
            stream.told_no_reader = true;
            out.send(peer, &Frame::NoReader(token));
        } else {
            stream.told = read;
            out.send(peer, &Frame::Consumed(token, read));
        }
    }

    /// Who runs a task, and by which token.
    fn worker_of(&self, key: TaskKey) -> Option<(ProcessId, u64)> {
        let task = &self.tasks[key.0 as usize];
        let peer = match (task.place, &task.spec.target) {
            (Place::Leased(lease), _) => self.leases[lease].peer,
            (Place::AtActor, Target::Method { actor, .. }) => self.actor_peer(*actor).ok()??,
            _ => return None,
        };
        Some((peer, u64::from(task.attempt) << 32 | u64::from(key.0)))
    }

    /// Gives the reader of a task's stream the next item.
    pub fn next_item(&mut self, task: TaskId, out: &mut impl Outbox) -> Next {
        let Some(stream) = self.streams.get_mut(&task) else { return Next::End };
        if stream.taken == stream.made {
            return if stream.ended { Next::End } else { Next::NotYet };
        }
        let item = stream.ahead.pop_front().expect("made, and not taken");
        stream.taken += 1;
        self.tell_worker(task, out);
        Next::Item(item)
    }

    /// Whether the next item has its value, or failure.
    pub fn is_next_ready(&self, task: TaskId) -> bool {
        let stream = self.streams.get(&task).filter(|stream| stream.taken < stream.made);
        let next = stream.and_then(|stream| stream.ahead.front());
        next.is_some_and(|next| self.content(*next).is_some())
    }

    /// Whether the reader has had everything.
    pub fn is_read(&self, task: TaskId) -> bool {
        let stream = self.streams.get(&task);
        stream.is_none_or(|stream| stream.ended && stream.taken == stream.made)
    }

    /// The next items, whether they have come or not, each counted once more: the reader has not
    /// taken them. Those that never come fail.
    pub fn peek(&mut self, task: TaskId, count: usize, out: &mut impl Outbox) -> Vec<ObjectKey> {
        let is_short =
            |stream: &&Stream| stream.reader == Reader::Program && stream.ahead.len() < count;
        while let Some(stream) = self.streams.get(&task).filter(is_short) {
            let item = stream.taken + stream.ahead.len() as u32 + 1;
            let (maker, ended) = (stream.task, stream.ended);
            let key = self.add_item(task, item, maker);
            if ended {
                self.complete(key, end_of_stream(), out);
            }
        }
        let ahead = self.streams.get(&task).into_iter().flat_map(|stream| stream.ahead.iter());
        let keys: Vec<ObjectKey> = ahead.take(count).copied().collect();
        keys.iter().for_each(|key| self.add_ref(*key));
        keys
    }

    /// The reader of a task's stream is gone (Y-3).
    pub fn drop_reader(&mut self, task: TaskId, out: &mut impl Outbox) {
        let Some(stream) = self.streams.get_mut(&task) else { return };
        stream.reader = Reader::Nobody;
        let awaited = stream.awaited();
        let ahead = std::mem::take(&mut stream.ahead);
        stream.taken = stream.made;
        let has_ended = std::mem::replace(&mut stream.ended, true);
        if stream.task.is_none() {
            self.streams.remove(&task);
        }
        if !has_ended {
            awaited.into_iter().for_each(|key| self.complete(key, end_of_stream(), out));
        }
        ahead.into_iter().for_each(|key| self.drop_ref(key, out));
        self.tell_worker(task, out);
    }

    /// An item was lost whose task is under way: that makes it again, if need be from its
    /// beginning (Y-5). `false`: it does not.
    pub(crate) fn is_yielded_again(&mut self, item: ObjectKey, out: &mut impl Outbox) -> bool {
        let id = self.objects[item.index()].id;
        let task = id.task();
        let Some(stream) = self.streams.get(&task) else { return false };
        let Some(key) = stream.task else { return false };
        let running = &self.tasks[key.0 as usize];
        // An attempt whose process is gone, too, is followed by another, or by its failure.
        let lives = |(peer, _): (ProcessId, u64)| !self.dead.contains(&peer);
        let has_passed = self.worker_of(key).is_some_and(lives) && item_of(id) <= stream.yielded;
        let spec = &running.spec;
        let runs_again = matches!(spec.target, Target::Function { .. }) && spec.retries != 0;
        if has_passed && (!runs_again || running.cancelled) {
            return false;
        }
        let Some(stream) = self.streams.get_mut(&task) else { return false };
        stream.lost.push(item);
        self.add_ref(item);
        self.tell_worker(task, out);
        true
    }

    /// Whether something was lost that the attempt which runs has yielded already.
    fn is_to_restart(&self, stream: &Stream) -> bool {
        let mut lost = stream.lost.iter().map(|key| &self.objects[key.index()]);
        lost.any(|object| object.content.is_none() && item_of(object.id) <= stream.yielded)
    }

    /// Whether the answer of a stream says nothing, as it was told to stop for the sake of another
    /// attempt (Y-5).
    pub(crate) fn was_stopped_to_restart(&self, key: TaskKey) -> bool {
        let stream = self.streams.get(&self.tasks[key.0 as usize].spec.id);
        stream.is_some_and(|stream| stream.told_no_reader && self.is_to_restart(stream))
    }

    /// Ends a task that yields: a value, or a failure, which is the last item as well.
    pub(crate) fn finish_stream(
        &mut self,
        key: TaskKey,
        contents: Contents,
        contained: Vec<Vec<ObjectKey>>,
        out: &mut impl Outbox,
    ) {
        let task = self.tasks.remove(key.0 as usize);
        let (spec, completion) = (task.spec, task.returns[0]);
        let mut contents = contents.into_iter();
        let content = contents.next().unwrap_or_else(|| {
            Content::failed(FailureCode::System, "the worker returned too few values")
        });
        for content in contents {
            if let Content::Stored { origin, .. } = content {
                out.free_stored(origin);
            }
        }
        let failure = matches!(content, Content::Failed(_)).then(|| content.clone());
        self.fill(completion, content, contained.concat(), out);
        let made = self.end_items(spec.id, failure.as_ref(), out);
        let (lost, again) = self.end_lost(spec.id, failure, out);
        self.drop_ref(completion, out);
        let mut returns: ReturnKeys = smallvec![completion];
        if self.lineage.is_spread && spec.retries != 0 {
            let known = |item| self.by_id.get(&item_object(spec.id, item)).copied();
            returns.extend((1..=made).map(|item| known(item).unwrap_or(ObjectKey::NONE)));
        }
        self.keep_recipe(spec, returns, out);
        self.make_again(again, "it was lost as its generator ran", out);
        lost.into_iter().for_each(|key| self.drop_ref(key, out));
    }

    /// No more items come (Y-4): how many there are.
    fn end_items(&mut self, id: TaskId, failure: Option<&Content>, out: &mut impl Outbox) -> u32 {
        let Some(stream) = self.streams.get_mut(&id) else { return 0 };
        let made = stream.made;
        let is_read = stream.reader == Reader::Program;
        stream.task = None;
        if !std::mem::replace(&mut stream.ended, true) {
            let mut awaited = stream.awaited();
            if failure.is_some() && is_read {
                stream.made += 1;
                if awaited.is_empty() {
                    awaited.push(self.add_item(id, made + 1, None));
                }
            }
            for key in awaited {
                let content = failure.cloned().unwrap_or_else(end_of_stream);
                self.complete(key, content, out);
            }
        }
        made
    }

    /// What was lost and did not come again has failed, or is to be made by another run: all of
    /// it, with a count each, and the latter.
    fn end_lost(
        &mut self,
        id: TaskId,
        failure: Option<Content>,
        out: &mut impl Outbox,
    ) -> (Vec<ObjectKey>, Vec<ObjectKey>) {
        let Some(stream) = self.streams.get_mut(&id) else { return Default::default() };
        let mut lost = std::mem::take(&mut stream.lost);
        let (yielded, stopped) = (stream.yielded, stream.told_no_reader);
        if stream.reader != Reader::Program {
            lost.extend(std::mem::take(&mut stream.ahead));
            self.streams.remove(&id);
        }
        let mut again = Vec::new();
        for key in lost.clone() {
            if self.content(key).is_some() {
                continue;
            }
            let item = item_of(self.objects[key.index()].id);
            if let Some(failure) = &failure {
                self.complete(key, failure.clone(), out);
            } else if item > yielded && !stopped {
                let text = format!(
                    "it was lost, and its generator, run again, ended before it: it yielded {yielded} \
                     items"
                );
                self.complete(key, Content::failed(FailureCode::Unrecoverable, text), out);
            } else {
                self.objects[key.index()].rare().gone = Gone::Yes;
                again.push(key);
            }
        }
        (lost, again)
    }

    pub(crate) fn validate_streams(&self) {
        for (id, stream) in &self.streams {
            assert!(stream.taken <= stream.made, "Y-1");
            assert!(stream.ahead.len() as u32 >= stream.made - stream.taken, "Y-1");
            for (item, key) in (stream.taken + 1..).zip(&stream.ahead) {
                assert_eq!(self.objects[key.index()].id, item_object(*id, item), "Y-1");
                let waits = item > stream.made && self.content(*key).is_none();
                assert!(!waits || !stream.ended, "Y-4");
            }
            if let Some(key) = stream.task {
                assert_eq!(self.tasks[key.0 as usize].spec.id, *id, "Y-3");
            }
            assert!(stream.task.is_some() || stream.reader == Reader::Program, "Y-3");
            assert!(stream.reader != Reader::Nobody || stream.ahead.is_empty(), "Y-3");
        }
        for (_, task) in &self.tasks {
            let is_open = self.streams.contains_key(&task.spec.id);
            assert_eq!(is_open, !matches!(task.spec.returns, Returns::Fixed(_)), "Y-3");
        }
    }
}
