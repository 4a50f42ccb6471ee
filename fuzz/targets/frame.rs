//! Frames of the shared-memory rings: any bytes decode or are refused, what decodes is the same after
//! another way there and back, and the short cuts that look into encoded tasks agree with it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_wire::frame::{Frame, renumber_task, take_back_number, task_number};

fuzz_target!(|bytes: &[u8]| {
    let mut renumbered = bytes.to_vec();
    renumber_task(&mut renumbered, 7);
    let (number, taken_back) = (task_number(bytes), take_back_number(bytes));
    let Ok(frame) = Frame::decode(bytes) else { return };
    let mut encoded = Vec::new();
    frame.encode(&mut encoded);
    assert_eq!(Frame::decode(&encoded).as_ref(), Ok(&frame));
    match frame {
        Frame::Task(task) => {
            assert_eq!(number, Some(task.number));
            let Ok(Frame::Task(other)) = Frame::decode(&renumbered) else {
                panic!("a renumbered task is a task");
            };
            assert_eq!(other.number, 7);
        }
        Frame::TakeBack(back) => assert_eq!(taken_back, Some(back)),
        _ => assert_eq!((number, taken_back), (None, None)),
    }
});
