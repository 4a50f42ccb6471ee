//! Prints `ui/src/row-types.ts`.

fn main() {
    print!("{}", oxiray_observe::typescript::text());
}
