//! Takes the built pages, `ui/dist`, into the program, compressed. Without them the program is
//! built all the same, with a page that says how to get them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let pages = here.join("../../ui/dist");
    // A directory that is not there cannot be watched: cargo would build this crate every time.
    let _ = fs::create_dir_all(&pages);
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut files = Vec::new();
    collect(&pages, &mut files)?;
    files.sort();
    let mut table = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    for (number, path) in files.iter().enumerate() {
        let name = path.strip_prefix(&pages).expect("it is in there").display().to_string();
        let packed = out.join(format!("page-{number}.gz"));
        let mut encoder = GzEncoder::new(File::create(&packed)?, Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        encoder.finish()?;
        let packed = packed.display().to_string();
        writeln!(table, "    ({name:?}, include_bytes!({packed:?})),").expect("text grows");
    }
    table.push_str("];\n");
    fs::write(out.join("pages.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
