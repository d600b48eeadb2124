//! The leak check: planted leaks are found, clean tables pass, and nothing leaves when something is found.

use hmask::gate::leaks::{ORIGINAL, Search, Tallies};
use hmask::gate::originals::Originals;
use hmask::table::rows::Rows;

use super::env::{Place, fixture};
use super::mask::{ORIGINALS, PERSONAL};
use super::server::{Server, rules};

/// What a masked column held, what was planted in another one, and what is found: an original, an identifier, or nothing.
const PLANTED: [(&str, &str, &str); 76] = [
    // The value itself, and in a sentence.
    ("zoe.lefevre@exemple.fr", "zoe.lefevre@exemple.fr", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "écrire à zoe.lefevre@exemple.fr svp", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "<zoe.lefevre@exemple.fr>", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "ZOE.LEFEVRE@EXEMPLE.FR", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "Zoe.Lefevre@Exemple.fr,autre", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "mailto:zoe.lefevre@exemple.fr?subject=x", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "https://x.fr/?m=zoe.lefevre%40exemple.fr", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "https://x.fr/?m=zoe%2Elefevre%40exemple%2Efr&y=1", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "zoe_lefevre_exemple_fr.csv", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "zoe lefevre (at) exemple fr", "nothing"),
    ("zoe.lefevre@exemple.fr", "{\"mail\":\"zoe.lefevre@exemple.fr\"}", ORIGINAL),
    ("zoe.lefevre@exemple.fr", "zoé.lefèvre@exemple.fr", ORIGINAL),
    // Names.
    ("Zoé Lefèvre", "Zoé Lefèvre", ORIGINAL),
    ("Zoé Lefèvre", "ZOÉ LEFÈVRE", ORIGINAL),
    ("Zoé Lefèvre", "zoe lefevre", ORIGINAL),
    ("Zoé Lefèvre", "Mme Zoe Lefevre a rappelé", ORIGINAL),
    ("Zoé Lefèvre", "LEFEVRE Zoé", ORIGINAL),
    ("Zoé Lefèvre", "Lefèvre, Zoé", ORIGINAL),
    ("Zoé Lefèvre", "Zoé\u{a0}Lefèvre", ORIGINAL),
    ("Zoé Lefèvre", "Zoé  Lefèvre ", ORIGINAL),
    ("Zoé Lefèvre", "Zoe\u{301} Lefe\u{300}vre", ORIGINAL),
    ("Zoé Lefèvre", "dossier/zoe-lefevre/2024.pdf", ORIGINAL),
    ("Zoé Lefèvre", "zoelefevre", ORIGINAL),
    ("Zoé Lefèvre", "Lefèvre", "nothing"),
    ("Zoé Lefèvre", "Zoé et Léa Lefèvre", "nothing"),
    ("Jean-Pierre Martin", "MARTIN Jean-Pierre", ORIGINAL),
    ("Jean-Pierre Martin", "jean pierre martin", ORIGINAL),
    ("Anne-Sophie d'Arc", "anne sophie d’arc", ORIGINAL),
    ("Müller", "MUELLER", "nothing"),
    ("Müller", "muller", ORIGINAL),
    ("Weiß Karl", "Karl Weiss", ORIGINAL),
    ("Cœur Léa", "coeur lea", ORIGINAL),
    ("Dvořák Petr", "petr dvorak", ORIGINAL),
    ("Łukasz Nowak", "lukasz nowak", ORIGINAL),
    ("Иван Петров", "иван петров", ORIGINAL),
    ("Γιώργος Παππάς", "ΓΙΩΡΓΟΣ ΠΑΠΠΑΣ", "nothing"),
    // Telephone numbers.
    ("0612345678", "0612345678", ORIGINAL),
    ("0612345678", "06 12 34 56 78", ORIGINAL),
    ("0612345678", "06.12.34.56.78", ORIGINAL),
    ("0612345678", "tel:+33612345678", ORIGINAL),
    ("0612345678", "+33 6 12 34 56 78", ORIGINAL),
    ("0612345678", "+33 (0)6 12 34 56 78", ORIGINAL),
    ("0612345678", "0033612345678", ORIGINAL),
    ("+33612345678", "06-12-34-56-78", ORIGINAL),
    ("06 12 34 56 78", "rappeler au 0612345678 ce soir", ORIGINAL),
    ("+49 1512 3456789", "01512 3456789", ORIGINAL),
    ("0612345678", "0612345679", "telephone number"),
    ("0612345678", "joindre au 0712345678", "telephone number"),
    ("0612345678", "au 07 12 34 56 78 demain", "telephone number"),
    ("0612345678", "au 0712345678 ce soir", "telephone number"),
    ("0612345678", "+32 470 12 34 56 est joignable", "telephone number"),
    // Numbers and codes.
    ("FR7630006000011234567890189", "FR76 3000 6000 0112 3456 7890 189", ORIGINAL),
    ("FR76 3000 6000 0112 3456 7890 189", "fr7630006000011234567890189", ORIGINAL),
    ("FR7630006000011234567890189", "virement DE89 3704 0044 0532 0130 00 reçu", "IBAN"),
    ("4711001", "/clients/4711001/factures", ORIGINAL),
    ("4711001", "https://x.fr/?id=4711001", ORIGINAL),
    ("4711001", "CMD-4711001-A", ORIGINAL),
    ("4711001", "47110012", "nothing"),
    ("C-2024-000123", "c2024000123", ORIGINAL),
    ("C-2024-000123", "réf. C/2024/000123", ORIGINAL),
    ("2 74 05 2B 009 111 46", "274052B00911146", ORIGINAL),
    ("x", "n° 2 11 12 2A 512 406 55 déclaré", "French social security number"),
    ("x", "payé par 4111 1111 1111 1111", "card number"),
    ("x", "voir a.muller@exemple.fr", "e-mail address"),
    // Dates and addresses.
    ("1984-02-29", "née le 1984-02-29", ORIGINAL),
    ("1984-02-29", "née le 1984/02/29", ORIGINAL),
    ("1984-02-29", "née le 29/02/1984", "nothing"),
    ("1984-02-29", "1984-02-29", "nothing"),
    ("12 rue des Œillets, 75011 Paris", "12, RUE DES OEILLETS - 75011 PARIS", ORIGINAL),
    ("12 rue des Œillets, 75011 Paris", "adresse : 12 rue des oeillets 75011 paris, 2e étage", ORIGINAL),
    // What is looked for by rule, or not at all.
    ("Ana", "Ana", "nothing"),
    ("42", "42", "nothing"),
    ("12345", "12345", "nothing"),
    ("inconnu", "inconnu", "nothing"),
    ("N/A", "N/A", "nothing"),
    ("0000000000", "0000000000", "nothing"),
];

/// What is found when a table with this original in a masked column has this text in another one, in a header, or in metadata.
fn found(original: &str, planted: &str, place: &str) -> Option<&'static str> {
    let originals = Originals::default();
    originals.see(&[original.as_bytes()]);
    let search = Search::new(&originals, Vec::new());
    let mut tallies = Tallies::default();
    let (mut names, mut metadata) = (vec!["other".to_owned()], Vec::new());
    match place {
        "header" => names.push(planted.into()),
        "metadata" => metadata.push(("key".to_owned(), planted.to_owned())),
        _ => tallies.add(search.rows(&Rows::one(planted)), 2),
    }
    search.finish(tallies, &names, &metadata).first().map(|f| f.what)
}

#[test]
fn planted_leaks_are_found() {
    let mut table = String::new();
    for (original, planted, what) in PLANTED {
        let got = found(original, planted, "cell").unwrap_or("nothing");
        assert_eq!(got, what, "{original:?} in {planted:?}");
        let plain = |text: &str| text.replace('|', "\\|").replace('\u{301}', "◌\u{301}").replace('\u{300}', "◌\u{300}");
        table += &format!("| `{}` | `{}` | {what} |\n", plain(original), plain(planted));
    }
    // Names of columns and metadata are sent, too.
    for (original, planted) in
        [("Zoé Lefèvre", "solde de Zoe LEFEVRE"), ("4711001", "client_4711001"), ("0612345678", "+33 6 12 34 56 78")]
    {
        for place in ["header", "metadata"] {
            assert_eq!(found(original, planted, place), Some(ORIGINAL), "{planted} in {place}");
            table += &format!("| `{original}` | `{planted}` ({place}) | {ORIGINAL} |\n");
        }
    }
    let found = PLANTED.iter().filter(|p| p.2 != "nothing").count();
    assert!(found >= 60, "{found}");
    super::env::blessed("docs/gate.md", "planted", &format!("| Original | Planted | Found |\n|---|---|---|\n{table}"));
}

#[test]
fn nothing_leaves_when_something_is_found() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    place.write("t.csv", "nom,note\nZoé Lefèvre,rappeler Mme LEFEVRE Zoe\nJean Martin,\n");
    let ask = |more: &[&str]| place.run(&[&["ask", "t.csv", "-c", "nom", "q", "--to", &server.url()], more].concat());
    let ran = ask(&[]).fails(1, "column \"note\": original of a masked column in 1 cell, first in record 2");
    assert!(ran.err.contains("--accept-leaks note") && !ran.err.contains("LEFEVRE"), "{}", ran.err);
    place.run(&["lend", "t.csv", "-c", "nom", "--to", &server.url(), "--", "true"]).fails(1, "original of a masked column");
    ask(&["--accept-leaks", "nots"]).fails(2, "no column nots");
    let ran = place.run(&["ask", "t.csv", "-c", "nom,note", "q", "--to", &server.url(), "--dry-run"]).ok();
    assert!(
        ran.err.contains("would send hmask-") && ran.err.contains("2 rows") && ran.err.contains("nothing was sent"),
        "{}",
        ran.err
    );
    assert_eq!(server.requests(), Vec::<String>::new());
    place
        .run(&[
            "ask",
            "t.csv",
            "-c",
            "nom",
            "SELECT 1 AS x FROM data",
            "--to",
            "local",
            "--accept-leaks",
            "note",
            "--manifest",
            "m.json",
        ])
        .ok();
    let manifest: serde_json::Value = serde_json::from_slice(&place.read("m.json")).unwrap();
    assert_eq!(manifest["gate"]["originals"], 2);
    assert_eq!(manifest["gate"]["accepted"].as_array().unwrap().len(), 1);
    place.run(&["ask", "t.csv", "-c", "nom,note", "SELECT 1 AS x FROM data", "--to", "local"]).ok();
}

#[test]
fn another_column_of_the_same_name_is_looked_through() {
    let place = Place::new();
    place.write("t.csv", "nom,nom\nZoé Lefèvre,Zoé Lefèvre\n");
    place.run(&["ask", "t.csv", "-c", "#1", "q", "--to", "local", "--dry-run"]).fails(1, "original of a masked column");
    place.run(&["ask", "t.csv", "-c", "nom", "q", "--to", "local", "--dry-run"]).ok();
    // No header: the first person stands in its place.
    place.write("t.csv", "zoe@exemple.fr,5\njean@exemple.fr,6\n");
    let ran =
        place.run(&["ask", "t.csv", "-c", "#1", "q", "--to", "local", "--dry-run"]).fails(1, "header: e-mail address in 1 cell");
    assert!(!ran.err.contains("hint") && !ran.err.contains("exemple"), "{}", ran.err);
    // A note in another encoding than the rest.
    place.write("t.csv", b"nom,note\nZo\xc3\xa9 Lef\xc3\xa8vre,Mme Zo\xe9 Lef\xe8vre\n");
    place.run(&["ask", "t.csv", "-c", "nom", "q", "--to", "local", "--dry-run"]).fails(1, "original of a masked column");
}

#[test]
fn a_file_is_checked_against_the_table_that_was_masked() {
    let place = Place::new().unset("HMASK_KEY");
    let source = fixture("clients.csv");
    let source = source.to_str().unwrap();
    let check = |file: &str| place.run(&["check", file, "--from", source, "-c", PERSONAL]);
    let with_key = Place::new();
    let out = place.path("masked.csv");
    with_key.run(&["mask", source, "-c", PERSONAL, "-o", out.to_str().unwrap()]).ok();
    let ran = check("masked.csv").ok();
    assert!(ran.text().contains("original values looked for"), "{}", ran.text());
    let ran = check(source);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.text().contains("column \"nom\": original of a masked column"), "{}", ran.text());
    place.write("answer.txt", "Le client le plus actif est\nMme LEFEVRE (zoe) !\n");
    let ran = check("answer.txt");
    assert!(ran.code == 1 && ran.text().contains("first in record 2"), "{}", ran.text());
    assert!(ORIGINALS.iter().all(|o| !ran.text().contains(o)));
    assert_eq!(check(fixture("clients.parquet").to_str().unwrap()).code, 1);
    place.write("clean.txt", "rien à signaler\n");
    check("clean.txt").ok();
    for name in ["old.csv", "old.txt"] {
        place.write(name, b"note\nMme Zo\xe9 Lef\xe8vre\n");
        assert_eq!(check(name).code, 1, "{name}");
    }
    place.write("wide.txt", "Zoé Lefèvre".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    assert_eq!(check("wide.txt").code, 3);
}
