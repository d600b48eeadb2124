//! What stands where there is no value: dashes, words, filler, and days where calendars of programs begin and end.

use std::sync::LazyLock;

use super::cell::{base, trimmed};
use super::other::date;

/// What stands for no value, between bars; compared in lower case and without accents.
const PLACEHOLDERS: &[&str] = &[
    "-|--|---|.|..|...|_|/|//|\\|?|??|???|*|**|x|xx|xxx|xxxx|#|\"\"|''|()|[]|{}|0|00|0.0|0,00|-1|n/a|na|n.a.|n.a|n/d|nd",
    "n.d.|n.d|n.c.|nc|n/c|n.r.|nr|s/o|null|nul|none|nil|nan|nat|inf|undefined|void|empty|blank|missing|(null)|<null>",
    "[null]|\\n|#n/a|#na|#null!|#value!|#valeur!|#wert!|#ref!|#div/0!|#name?|#nv|#nom?|inconnu|inconnue|non connu",
    "non renseigne|non renseignee|non communique|non disponible|non applicable|sans objet|aucun|aucune|vide|neant",
    "a completer|a definir|a renseigner|unknown|unk|not known|not available|not applicable|not provided|not specified",
    "unspecified|anonymous|redacted|tbd|tbc|tba|to be defined|pending|unbekannt|unbek.|k.a.|k. a.|ka|keine|keiner",
    "keine angabe|nicht angegeben|nicht bekannt|nicht vorhanden|leer|entfallt|entf.|offen|desconocido|desconocida",
    "sin datos|sin dato|no consta|no disponible|no aplica|s/d|ninguno|ninguna|vacio|pendiente|sconosciuto|sconosciuta",
    "ignoto|non noto|non disponibile|non specificato|nessuno|nessuna|vuoto|assente|da definire|test|tests|test1|testtest",
    "essai|prueba|prova|toto|titi|tata|foo|bar|baz|dummy|example|exemple|sample|muster|demo|fake|asdf|qwerty|azerty|abc",
    "abcd|aaa|xyz|lorem ipsum|0000-00-00|00/00/0000|00.00.0000|1900-01-00|12345|123456|1234567|12345678|123456789",
    "1234567890|0123456789|987654321|0600000000|0102030405|0606060606|0.0.0.0|127.0.0.1|::1|::|255.255.255.255|078051120",
    "4242424242424242|378282246310005|4111111111111111|5555555555554444",
];

/// The same, where some persons have these names.
const NAMES: &str = "so|other|mustermann|john doe|jane doe|max mustermann|erika mustermann|jean dupont|mario rossi";

/// Days that stand for none: where calendars of programs begin and end.
const DAYS: [(u32, u32, u32); 16] = [
    (1, 1, 1),
    (1000, 1, 1),
    (1753, 1, 1),
    (1899, 12, 30),
    (1899, 12, 31),
    (1900, 1, 1),
    (1901, 1, 1),
    (1970, 1, 1),
    (2099, 12, 31),
    (2999, 12, 31),
    (4712, 12, 31),
    (9999, 1, 1),
    (9999, 12, 31),
    (9999, 12, 30),
    (2100, 1, 1),
    (3000, 1, 1),
];

/// By their lengths, as most lengths have few.
static WORDS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let mut by_length = vec![Vec::new(); 32];
    for word in PLACEHOLDERS.iter().flat_map(|list| list.split('|')) {
        if let Some(list) = by_length.get_mut(word.len()) {
            list.push(word);
        }
    }
    by_length
});

fn is_listed(folded: &str) -> bool {
    let first = folded.as_bytes().first();
    WORDS.get(folded.len()).is_some_and(|list| list.iter().any(|word| word.as_bytes().first() == first && *word == folded))
}

/// Lower case without accents; none if it is longer than any placeholder.
fn folded<'b>(text: &str, buffer: &'b mut [u8; 32]) -> Option<&'b str> {
    if text.is_ascii() {
        let own = buffer.get_mut(..text.len())?;
        own.copy_from_slice(text.as_bytes());
        own.make_ascii_lowercase();
        return str::from_utf8(own).ok();
    }
    let mut len = 0;
    for c in text.chars() {
        let mut own = [0; 4];
        let piece = match c {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
            '…' => "...",
            '\u{a0}' | '\u{202f}' => " ",
            c if c.is_ascii_alphabetic() || !c.is_ascii() => base(c)?,
            c => c.encode_utf8(&mut own),
        };
        buffer.get_mut(len..len + piece.len())?.copy_from_slice(piece.as_bytes());
        len += piece.len();
    }
    str::from_utf8(&buffer[..len]).ok()
}

/// Whether the cell says that there is no value, or holds what is typed to fill a field. Numbers such as 0 are real in columns
/// of measures.
pub fn placeholder(text: &str) -> bool {
    let (text, mut buffer) = (trimmed(text), [0; 32]);
    let Some(folded) = folded(text, &mut buffer) else { return false };
    let bytes = folded.as_bytes();
    if bytes.is_empty() || is_listed(folded) {
        return true;
    }
    let Some(first) = bytes.first().filter(|b| b.is_ascii_digit()) else { return mailbox(folded) };
    // Numbers in groups, such as 06 06 06 06 06 and 078-05-1120.
    let (mut digits, mut len) = ([0; 32], 0);
    for b in bytes.iter().filter(|b| !matches!(b, b' ' | b'-')) {
        digits[len] = *b;
        len += 1;
    }
    let repeated = len > 3 && digits[..len].iter().all(|b| b == first);
    let filler = || str::from_utf8(&digits[..len]).is_ok_and(|digits| digits.len() > 8 && is_listed(digits));
    repeated || filler() || text.len() > 7 && date(text.as_bytes()).is_some_and(|day| DAYS.contains(&day)) || mailbox(folded)
}

/// Mailboxes of nobody. Those of example.org and the like only end so: they may be somebody's in a table made up as a whole.
fn mailbox(folded: &str) -> bool {
    let Some((local, domain)) = folded.split_once('@') else { return false };
    local == "noemail"
        || matches!(
            (local, domain.split('.').next()),
            ("test", Some("test")) | ("a", Some("a")) | ("no", Some("no")) | ("none", Some("none"))
        )
}

/// Whether it is one only if it stands there again and again: names of everybody, and days that were real ones, too.
pub fn placeholder_if_repeated(text: &str) -> bool {
    let (text, mut buffer) = (trimmed(text), [0; 32]);
    let name = folded(text, &mut buffer).is_some_and(|folded| NAMES.split('|').any(|name| name == folded));
    name || matches!(date(text.as_bytes()), Some((1980 | 2000, 1, 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        for text in [
            "",
            " ",
            "-",
            "–",
            "…",
            "N/A",
            "NULL",
            "Non renseigné",
            "entfällt",
            "#VALEUR!",
            "\\N",
            "0000",
            "99999",
            "06 06 06 06 06",
            "078-05-1120",
            "01/01/1900",
            "1900-01-01 00:00:00",
            "31.12.9999",
            "0.0.0.0",
            "4111 1111 1111 1111",
            "test@test.com",
            "no@no.fr",
            "'0",
        ] {
            assert!(placeholder(text), "{text}");
        }
        for text in
            ["Paris", "1", "12.50", "14/02/1986", "zoe@example.fr", "Nadia", "Jean Dupont", "Dupont", "2000-01-01", "1122", "112"]
        {
            assert!(!placeholder(text), "{text}");
        }
        assert!(
            placeholder_if_repeated("Jean Dupont")
                && placeholder_if_repeated("01.01.2000")
                && !placeholder_if_repeated("Zoé Lefèvre")
        );
    }
}
