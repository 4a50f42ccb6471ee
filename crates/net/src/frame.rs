//! Frames: a length (four bytes, little-endian), then that many bytes of payload.

use std::ops::ControlFlow;

use crate::error::LinkError;

/// The longest payload a frame may have.
pub const MAX_FRAME: usize = 16 << 20;

/// Bytes of the length.
pub(crate) const HEADER: usize = 4;

/// A buffer that was once as large as this is given back when it is empty.
const KEEP: usize = 64 << 10;

/// The header of a frame of these parts, if it is not too long.
pub(crate) fn header(parts: &[&[u8]]) -> Result<[u8; HEADER], LinkError> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    if length > MAX_FRAME {
        return Err(LinkError::BadFrame { length: length as u64 });
    }
    Ok((length as u32).to_le_bytes())
}

/// The payload's length, if it is not too long.
pub(crate) fn length(header: [u8; HEADER]) -> Result<usize, LinkError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > MAX_FRAME {
        return Err(LinkError::BadFrame { length: length as u64 });
    }
    Ok(length)
}

/// Makes frames of bytes that come in pieces.
///
/// Holds what has come and is not yet a frame: no memory is set aside for what a length promises.
#[derive(Default, Debug)]
pub struct Assembler {
    held: Vec<u8>,
}

impl Assembler {
    /// Takes the next piece and hands out the frames that are complete, until told to stop; then
    /// the rest is kept, as it is.
    pub fn feed(
        &mut self,
        piece: &[u8],
        on_frame: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LinkError> {
        if self.held.is_empty() {
            let (used, flow) = hand_out(piece, on_frame)?;
            self.held.extend_from_slice(&piece[used..]);
            return Ok(flow);
        }
        self.held.extend_from_slice(piece);
        let (used, flow) = hand_out(&self.held, on_frame)?;
        self.held.drain(..used);
        if self.held.is_empty() && self.held.capacity() > KEEP {
            self.held = Vec::new();
        }
        Ok(flow)
    }

    /// Takes the next piece without looking at it.
    pub fn hold(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
    }

    /// What was not made a frame of.
    pub fn into_rest(self) -> Vec<u8> {
        self.held
    }
}

/// Hands out the frames at the beginning of `bytes`. Says how many bytes they were.
fn hand_out(
    bytes: &[u8],
    on_frame: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(usize, ControlFlow<()>), LinkError> {
    let mut rest = bytes;
    let mut flow = ControlFlow::Continue(());
    while flow.is_continue()
        && let Some((header, after)) = rest.split_first_chunk()
        && let Some((payload, after)) = after.split_at_checked(length(*header)?)
    {
        rest = after;
        flow = on_frame(payload);
    }
    Ok((bytes.len() - rest.len(), flow))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in payloads {
            bytes.extend_from_slice(&header(&[payload]).unwrap());
            bytes.extend_from_slice(payload);
        }
        bytes
    }

    #[test]
    fn a_length_alone_takes_no_memory() {
        let mut assembler = Assembler::default();
        let claim = u32::try_from(MAX_FRAME).unwrap().to_le_bytes();
        let flow = assembler.feed(&claim, &mut |_| panic!("no frame is complete")).unwrap();
        assert!(flow.is_continue());
        assert!(assembler.held.capacity() < 100);
    }

    #[test]
    fn a_length_too_great_is_refused_at_once() {
        for length in [MAX_FRAME as u32 + 1, u32::MAX] {
            let mut assembler = Assembler::default();
            let refused = assembler.feed(&length.to_le_bytes(), &mut |_| panic!("not a frame"));
            assert!(
                matches!(refused, Err(LinkError::BadFrame { length: l }) if l == u64::from(length))
            );
            assert!(assembler.held.capacity() < 100);
        }
        assert!(header(&[&vec![0; MAX_FRAME], &[]]).is_ok());
        assert!(header(&[&vec![0; MAX_FRAME], &[0]]).is_err());
    }

    #[test]
    fn memory_of_a_large_frame_is_given_back() {
        let bytes = framed(&[vec![7; 1 << 20]]);
        let mut assembler = Assembler::default();
        let mut frames = 0;
        for piece in bytes.chunks(10_000) {
            let counted = &mut |_: &[u8]| {
                frames += 1;
                ControlFlow::Continue(())
            };
            let _ = assembler.feed(piece, counted).unwrap();
        }
        assert_eq!((frames, assembler.held.capacity()), (1, 0));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            sizes in prop::collection::vec(1usize..300, 1..20),
        ) {
            let bytes = framed(&payloads);
            let mut assembler = Assembler::default();
            let mut got = Vec::new();
            let mut rest = &bytes[..];
            for size in sizes.iter().cycle() {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                let flow = assembler.feed(piece, &mut |frame| {
                    got.push(frame.to_vec());
                    ControlFlow::Continue(())
                });
                prop_assert!(flow.unwrap().is_continue());
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(got, payloads);
            prop_assert!(assembler.held.is_empty());
        }

        #[test]
        fn what_comes_after_a_stop_is_kept(
            first in prop::collection::vec(any::<u8>(), 0..50),
            rest in prop::collection::vec(any::<u8>(), 0..50),
            cut in 0usize..50,
        ) {
            let mut bytes = framed(std::slice::from_ref(&first));
            let (early, late) = bytes.split_at(cut.min(bytes.len()));
            let (early, mut late) = (early.to_vec(), late.to_vec());
            late.extend_from_slice(&rest);
            bytes.extend_from_slice(&rest);
            let mut assembler = Assembler::default();
            let mut got = Vec::new();
            let mut take = |frame: &[u8]| {
                got.push(frame.to_vec());
                ControlFlow::Break(())
            };
            let mut flow = assembler.feed(&early, &mut take).unwrap();
            if flow.is_continue() {
                flow = assembler.feed(&late, &mut take).unwrap();
            } else {
                assembler.hold(&late);
            }
            prop_assert!(flow.is_break());
            prop_assert_eq!(got, vec![first]);
            prop_assert_eq!(assembler.into_rest(), rest);
        }
    }
}
