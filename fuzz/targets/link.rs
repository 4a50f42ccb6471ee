//! Frames of a link between machines: whatever pieces the bytes come in, the same frames come out, and
//! no memory is taken for what a length only promises.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use oxiray_net::Assembler;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (bytes, sizes) = input;
    let whole = frames(std::iter::once(&bytes[..]));
    let mut rest = &bytes[..];
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, after) = rest.split_at(usize::from(size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    assert_eq!(frames(pieces.into_iter()), whole);
});

/// The frames, and the rest that is not one yet; `None` for the rest: a length was refused.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    let (mut assembler, mut found) = (Assembler::default(), Vec::new());
    for piece in pieces {
        let taken = assembler.feed(piece, &mut |frame| {
            found.push(frame.to_vec());
            ControlFlow::Continue(())
        });
        if taken.is_err() {
            return (found, None);
        }
    }
    (found, Some(assembler.into_rest()))
}
