//! Schemas and batches of Arrow IPC: whatever the bytes, an output or a refusal, no panic and no huge allocation.

#![no_main]

use hmask::Missing;
use hmask::table::ipc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = hmask_fuzz::with_job("*", |job| ipc::mask(&mut &data[..], &mut std::io::sink(), job, Missing::Ignore));
});
