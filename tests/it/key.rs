//! The key: where it comes from, and what is refused.

use super::env::{KEY, Place};

const TABLE: &str = "id,v\n1,007\n";
const MASKED: &str = "id,v\n1,676956ddd7e64da5\n";

#[test]
fn every_source_gives_the_same_tokens() {
    let place = Place::new().unset("HMASK_KEY").set("OTHER", KEY);
    place.write("t.csv", TABLE);
    place.write("key", format!("{KEY}\n"));
    place.write("key.crlf", format!("{KEY}\r\n"));
    let sources: [&[&str]; 5] = [
        &["--key-env", "OTHER"],
        &["--key-file", "key"],
        &["--key-file", "key.crlf"],
        &["--key-fd", "0"],
        &["--key-command", "cat key"],
    ];
    for source in sources {
        let args = [&["mask", "t.csv", "-c", "v", "-o", "-"], source].concat();
        let ran = place.run_with_input(&args, format!("{KEY}\n").as_bytes()).ok();
        assert_eq!(ran.text(), MASKED, "{source:?}");
    }
    let by_file = Place::new().unset("HMASK_KEY").set("HMASK_KEY_FILE", "key");
    by_file.write("t.csv", TABLE);
    by_file.write("key", KEY);
    assert_eq!(by_file.run(&["mask", "t.csv", "-c", "v", "-o", "-"]).ok().text(), MASKED);
}

#[test]
fn no_weak_or_double_key_is_taken_and_nothing_is_written() {
    let short = "SHORTSHORTSHORTSHORTSHORTSHORT1";
    let cases = [
        (Place::new().unset("HMASK_KEY"), "HMASK_KEY is not set"),
        (Place::new().set("HMASK_KEY", ""), "0 bytes"),
        (Place::new().set("HMASK_KEY", short), "31 bytes"),
        (Place::new().set("HMASK_KEY", &"Q".repeat(64)), "equal"),
        (Place::new().set("HMASK_KEY_FILE", "x"), "both"),
    ];
    for (place, says) in cases {
        place.write("t.csv", TABLE);
        let ran = place.run(&["mask", "t.csv", "-c", "v", "-o", "o.csv"]).fails(2, says);
        assert!(!ran.err.contains(short) && !ran.err.contains("QQQ") && !ran.err.contains(KEY), "{}", ran.err);
        assert_eq!(place.names(), ["t.csv"]);
    }
}

#[test]
fn a_key_command_fails_as_such_and_does_not_see_secrets() {
    let place = Place::new().set("OPENAI_API_KEY", "sk-x");
    place.write("t.csv", TABLE);
    place
        .run(&["mask", "t.csv", "-c", "v", "-o", "-", "--key-command", "echo hidden-output-of-the-vault; exit 3"])
        .fails(2, "key command failed");
    place.run(&["mask", "t.csv", "-c", "v", "-o", "-", "--key-command", "env > seen; cat seen"]).ok();
    let seen = String::from_utf8(place.read("seen")).unwrap();
    assert!(!seen.contains(KEY) && !seen.contains("sk-x"), "{seen}");
    // Who keeps keys is asked with the credentials of the house, though our own environment does not show them any more.
    let place = place.set("AWS_SECRET_ACCESS_KEY", "of-the-house").set("AZURE_OPENAI_API_KEY", "sk-y").set("AWS_KEY", KEY);
    place.run(&["mask", "t.csv", "-c", "v", "-o", "-", "--key-command", "env > other; cat seen"]).ok();
    let other = String::from_utf8(place.read("other")).unwrap();
    assert!(other.contains("of-the-house") && !other.contains("sk-y"), "{other}");
    let ran = place.run(&[
        "mask",
        "t.csv",
        "-c",
        "v",
        "-o",
        "-",
        "--key-command",
        "test \"$AWS_SECRET_ACCESS_KEY\" = of-the-house && cat seen",
    ]);
    ran.ok();
}

#[test]
fn keygen_gives_64_hex_digits_never_twice() {
    let place = Place::new().unset("HMASK_KEY");
    let (one, two) = (place.run(&["keygen"]).ok().text(), place.run(&["keygen"]).ok().text());
    assert!(one.len() == 65 && one.trim_end().chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase()), "{one}");
    assert_ne!(one, two);
    let made = Place::new().set("HMASK_KEY", one.trim_end());
    made.write("t.csv", TABLE);
    made.run(&["mask", "t.csv", "-c", "v", "-o", "-"]).ok();
}

#[test]
fn scopes_give_other_tokens() {
    let place = Place::new();
    place.write("t.csv", TABLE);
    let token = |scope: &str| place.run(&["mask", "t.csv", "-c", "v", "-o", "-", "--scope", scope]).ok().text();
    assert_eq!(token("stable"), MASKED);
    assert!(token("recipient:acme").contains("a2f0260e8c708c82"));
    assert!(token("project:étude").contains("27301663386fb6a4"));
    assert_ne!(token("upload"), token("upload"));
    place.run(&["mask", "t.csv", "-c", "v", "-o", "-", "--scope", "team"]).fails(2, "scope");
}
