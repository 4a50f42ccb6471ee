//! How fast spilling is beside plain files. Not a test of anything, so it is not run with the rest:
//! `cargo test --release -p oxiray-spill --test throughput -- --ignored --nocapture`

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use oxiray_spill::{Spillway, Target};

const OBJECT: usize = 1 << 20;
const COUNT: usize = 64;
const ROUNDS: usize = 15;

#[test]
#[ignore = "a measurement"]
fn beside_plain_files() {
    let directory = std::env::var_os("SPILL_DIRECTORY").map_or_else(std::env::temp_dir, Into::into);
    let spillway = Spillway::open(&Target::Directories(vec![directory.clone()]), "throughput")
        .expect("a directory");
    let whole: Vec<u8> = (0..OBJECT * COUNT).map(|index| (index * 7 / 3) as u8).collect();
    let batch: Vec<&[u8]> = whole.chunks(OBJECT).collect();
    let small: Vec<&[u8]> = whole.chunks(4096).collect();
    let mut into = vec![0; whole.len()];
    let plain = directory.join("oxiray-throughput-plain");
    let mut times: [Vec<Duration>; 6] = Default::default();
    for _ in 0..ROUNDS {
        let mut timed = |index: usize, work: &mut dyn FnMut()| {
            let begun = Instant::now();
            work();
            times[index].push(begun.elapsed());
        };
        timed(0, &mut || fs::write(&plain, &whole).expect("written"));
        timed(1, &mut || {
            // Into room that is there already, as ours.
            let mut file = fs::File::open(&plain).expect("opened");
            file.read_exact(&mut into).expect("read");
        });
        fs::remove_file(&plain).expect("removed");
        for (index, objects) in [(2, &batch), (4, &small)] {
            let mut places = Vec::new();
            timed(index, &mut || places = spillway.write(objects).expect("written"));
            timed(index + 1, &mut || {
                for (place, room) in places.iter().zip(into.chunks_mut(objects[0].len())) {
                    spillway.read(place, room).expect("read");
                }
            });
            for place in &places {
                spillway.delete(place);
            }
        }
    }
    let speed = |index: usize| {
        // The best: other programs only ever make it slower.
        let best = times[index].iter().min().expect("measured");
        whole.len() as f64 / best.as_secs_f64() / 1e9
    };
    println!("64 MB, best of {ROUNDS} rounds, GB/s (and beside plain files):");
    for (index, name) in [
        (0, "std::fs::write"),
        (2, "write of 64 x 1 MB"),
        (4, "write of 16384 x 4 KB"),
        (1, "File::read_exact"),
        (3, "read of 64 x 1 MB"),
        (5, "read of 16384 x 4 KB"),
    ] {
        println!("{name:>24} {:6.2} ({:.2})", speed(index), speed(index) / speed(index % 2));
    }
}
