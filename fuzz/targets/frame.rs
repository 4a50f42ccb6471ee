//! Frames of the shared-memory rings: any bytes decode or are refused, what decodes is the same after
//! another way there and back, and the short cuts that look into encoded tasks agree with it, also on
//! what a task is given.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_wire::frame::{
    Frame, renumber_task, take_back_number, task_incarnation, task_place, task_token,
};
use oxiray_wire::given::Given;

fuzz_target!(|bytes: &[u8]| {
    let mut encoded = Vec::new();
    let mut renumbered = bytes.to_vec();
    renumber_task(&mut renumbered, 7);
    let (place, token) = (task_place(bytes), task_token(bytes));
    let taken_back = take_back_number(bytes);
    let Ok(frame) = Frame::decode(bytes) else { return };
    frame.encode(&mut encoded);
    assert_eq!(Frame::decode(&encoded).as_ref(), Ok(&frame));
    match frame {
        Frame::Task(task) => {
            assert_eq!(task_incarnation(bytes), Some(task.incarnation));
            assert_eq!(place, Some((task.number, task.lane)));
            assert_eq!(token, Some(task.token));
            let given = Given::from_words(&task.devices);
            assert_eq!(Given::from_words(&given.clone().into_words()), given);
            let Ok(Frame::Task(other)) = Frame::decode(&renumbered) else {
                panic!("a renumbered task is a task");
            };
            assert_eq!(other.number, 7);
        }
        Frame::TakeBack(back) => assert_eq!(taken_back, Some(back)),
        _ => assert_eq!((place, token, taken_back), (None, None, None)),
    }
});
