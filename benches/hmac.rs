//! Nanoseconds a value of every kernel and of its peers, in one run: `cargo bench --bench hmac`.
//!
//! Each measures a batch of 1024 values of one length; the time a value is what is printed divided by 1024 (as "elem/s" has it).

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hmac::{Hmac, KeyInit, Mac};
use hmask::mask::{Kernel, KeyState, Tag};
use sha2::Sha256;
use sha2::block_api::compress256;

const KEY: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const BATCH: usize = 1024;

fn hmac(c: &mut Criterion) {
    for length in [8, 25, 55, 56, 120, 1000] {
        let mut group = c.benchmark_group(format!("hmac/{length}"));
        group.throughput(Throughput::Elements(BATCH as u64));
        let text: Vec<u8> = (0..length + BATCH).map(|i| i as u8).collect();
        let messages: Vec<&[u8]> = (0..BATCH).map(|i| &text[i..i + length]).collect();
        let mut out = vec![Tag::default(); BATCH];
        let keyed = Hmac::<Sha256>::new_from_slice(KEY).expect("any key fits");
        group.bench_function("hmac crate", |b| {
            b.iter(|| {
                for (message, tag) in messages.iter().zip(&mut out) {
                    let mut mac = keyed.clone();
                    mac.update(message);
                    *tag = mac.finalize().into_bytes().into();
                }
            });
        });
        let ring = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, KEY);
        group.bench_function("ring", |b| {
            b.iter(|| {
                for (message, tag) in messages.iter().zip(&mut out) {
                    tag.copy_from_slice(ring::hmac::sign(&ring, message).as_ref());
                }
            });
        });
        // The least that one message after another can cost: its compressions, and nothing around them.
        group.bench_function("compressions alone", |b| {
            let blocks = vec![[0u8; 64]; (length + 9).div_ceil(64) + 1];
            b.iter(|| {
                for _ in 0..BATCH {
                    let mut state = [1; 8];
                    compress256(&mut state, black_box(&blocks));
                    black_box(state);
                }
            });
        });
        let state = KeyState::new(KEY);
        for kernel in Kernel::ALL.into_iter().filter(|k| k.is_available()) {
            group.bench_with_input(BenchmarkId::from_parameter(kernel.name()), &kernel, |b, kernel| {
                b.iter(|| kernel.tags(&state, &messages, &mut out));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, hmac);
criterion_main!(benches);
