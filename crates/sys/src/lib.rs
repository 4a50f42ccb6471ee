//! The operating system, and all of its unsafe code.
//!
//! - [`memory`]: memory files and their shared mappings
//! - [`futex`]: sleeping on a word of shared memory
//! - [`eventfd`]: descriptors that become readable when somebody rings them
//! - [`packet`]: sequenced-packet Unix sockets that carry file descriptors
//! - [`process`]: what a process does to itself and to its children
//! - [`termination`]: being asked to end, as something to poll
//! - [`clock`]: the two clocks
//! - [`cpu`]: on which processors a thread runs
//! - [`control_group`]: control groups of the kernel, and what they say of memory
//! - [`machine`]: the memory that there is and who uses it, the host's name, random bytes

pub mod clock;
pub mod control_group;
pub mod cpu;
pub mod eventfd;
pub mod futex;
pub mod machine;
pub mod memory;
pub mod packet;
pub mod process;
pub mod termination;
