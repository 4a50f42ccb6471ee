//! Messages of any kind, without a word about any of them: which fields a message has is found by
//! trying. So a message or a field that is added is among those that are said from then on.

use prost::Message;

/// What a field holds.
#[derive(Clone, Debug)]
enum Kind {
    Number,
    /// Numbers in a row.
    Numbers,
    Text,
    Bytes,
    Inner(Vec<Field>),
}

#[derive(Clone, Debug)]
struct Field {
    tag: u64,
    kind: Kind,
}

/// The fields of a message.
pub(super) struct Schema(Vec<Field>);

/// No message of ours has higher ones.
const TAGS: std::ops::RangeInclusive<u64> = 1..=45;
/// Whoever nests deeper is left as it is.
const DEEPEST: usize = 7;

impl Schema {
    /// Of a message whose one field is its body.
    pub(super) fn of<M: Message + Default + PartialEq>() -> Self {
        Self(fields::<M>(&[]))
    }

    /// How many different bodies there are.
    pub(super) fn bodies(&self) -> usize {
        self.0.len()
    }

    /// A message with the body at `at`, of what `dice` gives.
    pub(super) fn message<M: Message + Default>(&self, at: usize, dice: &mut Dice<'_>) -> M {
        let mut bytes = Vec::new();
        write(&self.0[at % self.0.len()], dice, &mut bytes);
        M::decode(&*bytes).expect("each field was tried")
    }
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn delimited(tag: u64, content: &[u8], bytes: &mut Vec<u8>) {
    varint(tag << 3 | 2, bytes);
    varint(content.len() as u64, bytes);
    bytes.extend_from_slice(content);
}

/// `content` below these fields.
fn below(path: &[u64], content: Vec<u8>) -> Vec<u8> {
    path.iter().rev().fold(content, |content, tag| {
        let mut bytes = Vec::new();
        delimited(*tag, &content, &mut bytes);
        bytes
    })
}

/// The fields of the message below `path`.
fn fields<M: Message + Default + PartialEq>(path: &[u64]) -> Vec<Field> {
    let without = M::decode(&*below(path, Vec::new())).expect("an empty message");
    // Takes it, and does not merely pass it over.
    let takes =
        |content: Vec<u8>| M::decode(&*below(path, content)).is_ok_and(|with| with != without);
    let holds = |tag: u64, content: &[u8]| {
        let mut bytes = Vec::new();
        delimited(tag, content, &mut bytes);
        takes(bytes)
    };
    let mut found = Vec::new();
    for tag in TAGS {
        let mut number = Vec::new();
        varint(tag << 3, &mut number);
        number.push(1);
        let is_number = takes(number);
        let kind = match () {
            () if is_number && holds(tag, &[5]) => Kind::Numbers,
            () if is_number => Kind::Number,
            // Neither a text nor a message nor numbers,
            () if holds(tag, &[0xff, 0xff]) => Kind::Bytes,
            // and a letter that is no message.
            () if holds(tag, &[0xc2, 0x80]) => Kind::Text,
            () if path.len() < DEEPEST && holds(tag, &[]) => {
                Kind::Inner(fields::<M>(&[path, &[tag]].concat()))
            }
            () => continue,
        };
        found.push(Field { tag, kind });
    }
    found
}

fn write(field: &Field, dice: &mut Dice<'_>, bytes: &mut Vec<u8>) {
    let tag = field.tag;
    match &field.kind {
        Kind::Number => {
            varint(tag << 3, bytes);
            varint(dice.number(), bytes);
        }
        Kind::Numbers => {
            let mut content = Vec::new();
            (0..dice.below(3)).for_each(|_| varint(dice.number(), &mut content));
            delimited(tag, &content, bytes);
        }
        Kind::Text => delimited(tag, dice.text().as_bytes(), bytes),
        Kind::Bytes => delimited(tag, &dice.bytes(), bytes),
        Kind::Inner(fields) => {
            let mut content = Vec::new();
            // Of a choice the last one counts; of others all that are there.
            for inner in fields {
                let often = if fields.len() > 12 { 12 } else { 4 };
                let count = match dice.below(often) {
                    0 => 0,
                    1 if often == 4 => 2,
                    _ => 1,
                };
                (0..count).for_each(|_| write(inner, dice, &mut content));
            }
            delimited(tag, &content, bytes);
        }
    }
}

/// What fields are filled with: few values, so that they meet.
pub(super) struct Dice<'a> {
    pub(super) state: u64,
    pub(super) numbers: &'a [u64],
    pub(super) texts: &'a [&'a str],
    pub(super) names: &'a [Vec<u8>],
}

impl Dice<'_> {
    pub(super) fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    fn number(&mut self) -> u64 {
        match self.below(8) {
            0..4 => self.below(5) as u64,
            4..7 => self.numbers[self.below(self.numbers.len())],
            _ => [u64::MAX, 1 << 32, 10_000, 1 << 20, i64::MAX as u64][self.below(5)],
        }
    }

    fn text(&mut self) -> &str {
        self.texts[self.below(self.texts.len())]
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.names[self.below(self.names.len())].clone()
    }
}

#[test]
fn every_message_is_found() {
    use oxiray_wire::cluster::{BetweenNodes, FromControl};
    use oxiray_wire::control::ToNode;
    let counts = (
        Schema::of::<ToNode>().bodies(),
        Schema::of::<BetweenNodes>().bodies(),
        Schema::of::<FromControl>().bodies(),
    );
    assert!(counts.0 >= 38 && counts.1 >= 14 && counts.2 >= 18, "{counts:?}");
}
