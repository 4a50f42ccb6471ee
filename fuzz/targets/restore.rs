//! What the control service kept, of any bytes: it begins again with its invariants, or says which
//! record is damaged; what it keeps then begins again, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_control::{Control, Now, Record, Table};

fuzz_target!(|input: Vec<(u8, Vec<u8>, Vec<u8>)>| {
    let name = Record { table: Table::Meta, key: b"cluster".to_vec(), value: vec![7; 16] };
    let rest = input.into_iter().map(|(table, key, value)| {
        let table = Table::ALL[usize::from(table) % Table::ALL.len()];
        Record { table, key, value }
    });
    let now = Now { ns: 1, wall_ms: 1 };
    let Ok(restored) = Control::restore(std::iter::once(name).chain(rest).collect(), now) else {
        return;
    };
    let control = restored.expect("there was a name");
    control.validate();
    let again = Control::restore(control.records(), now).expect("our own records are read");
    assert_eq!(again.expect("as before").records(), control.records());
});
