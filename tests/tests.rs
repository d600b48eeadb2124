//! The command line as a user types it. One binary; each module holds what its first line says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]
#![allow(unreachable_pub, reason = "one binary: its modules are its only readers")]

mod it {
    mod ask;
    mod disk;
    mod env;
    mod evidence;
    mod faults;
    mod folder;
    mod ipc;
    mod key;
    mod leaks;
    mod mask;
    mod mutations;
    mod parquet;
    mod places;
    mod policy;
    mod secrets;
    mod server;
    #[cfg(feature = "objects")]
    mod stores;
    mod sweep;
    mod vectors;
    mod wire;
}
