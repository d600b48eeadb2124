//! What the header of a column says of it, in French, English, German, Spanish and Italian.
//!
//! A header is the words it has, whatever their case, accents and separators. The longest phrase of the table within it counts.
//! Two lists keep other things out: a header with a word of `APART` says something about the value and does not hold it
//! (`email_status`, `nom_produit`), and words of many meanings (`name`, `note`) count only alone or beside words of persons
//! (`ROLES`): `customer_name` is a name, `file name` is not.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::cell::base;
use super::words::{APART, NEAR, PHRASES, ROLES, WEAK};

/// How much values of a meaning tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// They identify a person.
    Direct,
    /// They narrow down who it is.
    Quasi,
    /// They are of the special categories of article 9 of the GDPR, or of article 10.
    Sensitive,
    /// They say nothing of a person, or only their content tells.
    None,
}

macro_rules! meanings {
    ($($meaning:ident $class:ident $name:literal)*) => {
        /// What a column holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Meaning {
            $(#[doc = $name] $meaning,)*
        }

        impl Meaning {
            /// All meanings.
            pub const ALL: &[Self] = &[$(Self::$meaning),*];

            /// Its name in messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$meaning => $name,)*
                }
            }

            /// How much its values tell.
            pub fn class(self) -> Class {
                match self {
                    $(Self::$meaning => Class::$class,)*
                }
            }
        }
    };
}

meanings! {
    FirstName Direct "first name"
    LastName Direct "last name"
    FullName Direct "name"
    Email Direct "e-mail address"
    Phone Direct "telephone number"
    Address Direct "postal address"
    Street Direct "street"
    City Quasi "city"
    Postcode Quasi "postcode"
    BirthDate Quasi "date of birth"
    BirthPlace Quasi "place of birth"
    Sex Quasi "sex"
    Nationality Quasi "nationality"
    Age Quasi "age"
    Profession Quasi "profession"
    MaritalStatus Quasi "marital status"
    Salary Quasi "salary"
    Location Quasi "geographic position"
    NationalId Direct "national identifier"
    TaxId Direct "tax number"
    CustomerId Direct "number of a customer or employee"
    Iban Direct "bank account"
    Card Direct "payment card"
    Login Direct "user name"
    Ip Direct "IP address"
    Device Direct "device"
    Vehicle Direct "number plate"
    Signature Direct "signature"
    Photo Direct "photograph"
    Health Sensitive "health"
    Religion Sensitive "religion"
    Ethnicity Sensitive "ethnic origin"
    Union Sensitive "union membership"
    Political Sensitive "political opinion"
    Orientation Sensitive "sexual orientation"
    Biometric Sensitive "biometric or genetic data"
    Criminal Sensitive "criminal record"
    Company None "company"
    CompanyId None "company number"
    Note None "free text"
}

/// Phrase without spaces, what it means, and whether it is one of many meanings.
static TABLE: LazyLock<HashMap<String, (Meaning, bool)>> = LazyLock::new(|| {
    let entries = |list: &'static [(Meaning, &'static str)], weak: bool| {
        list.iter().flat_map(move |(m, phrases)| phrases.split('|').map(move |p| (p.replace(' ', ""), (*m, weak))))
    };
    entries(WEAK, true).chain(entries(PHRASES, false)).collect()
});

static WORDS: LazyLock<[HashSet<&str>; 3]> = LazyLock::new(|| [ROLES, APART, NEAR].map(|list| list.split_whitespace().collect()));

/// Its words without case, accents and numbers; a capital within a word begins another one.
fn words(header: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut chars = header.chars().peekable();
    while let Some(c) = chars.next() {
        let capital = c.is_uppercase()
            && (before.is_lowercase() || before.is_uppercase() && chars.peek().is_some_and(|n| n.is_lowercase()));
        let folded = base(c);
        if (capital || folded.is_none()) && words.last().is_some_and(|w| !w.is_empty()) {
            words.push(String::new());
        }
        if let (Some(word), Some(folded)) = (words.last_mut(), folded) {
            word.push_str(folded);
        }
        before = c;
    }
    words.retain(|w| !w.is_empty());
    words
}

/// What a column with this header holds; none if it does not say.
pub fn meaning(header: &str) -> Option<Meaning> {
    let plain = words(header);
    // Umlauts may be written with an e.
    look_up(&plain).or_else(|| {
        let umlauts = |w: &String| w.replace("ae", "a").replace("oe", "o").replace("ue", "u");
        look_up(&plain.iter().map(umlauts).collect::<Vec<_>>())
    })
}

fn look_up(words: &[String]) -> Option<Meaning> {
    let [roles, apart, near] = &*WORDS;
    // Headers are short; sentences are none.
    if words.len() > 8 {
        return None;
    }
    let mut best: Option<(usize, Meaning)> = None;
    for first in 0..words.len() {
        for end in first + 1..=words.len() {
            let phrase = words[first..end].concat();
            let Some((meaning, weak)) = TABLE.get(&phrase) else { continue };
            let mut rest = words[..first].iter().chain(&words[end..]);
            let tells = matches!(meaning.class(), Class::Quasi | Class::Sensitive);
            let is_apart = |w: &str| apart.contains(w) && !(tells && near.contains(w));
            let fits = if *weak { rest.all(|w| roles.contains(w.as_str())) } else { !rest.any(|w| is_apart(w)) };
            // A weak phrase counts less than any other beside it.
            let weight = phrase.len() * 2 + if *weak { 0 } else { 100 };
            if fits && best.is_none_or(|(n, _)| weight > n) {
                best = Some((weight, *meaning));
            }
        }
    }
    best.map(|(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_persons() {
        for (header, expected) in [
            ("Nom", Meaning::LastName),
            ("NOM_CLIENT", Meaning::LastName),
            ("surname", Meaning::LastName),
            ("lastName", Meaning::LastName),
            ("Prénom", Meaning::FirstName),
            ("Prénom du patient", Meaning::FirstName),
            ("firstname", Meaning::FirstName),
            ("Name", Meaning::FullName),
            ("customer_name", Meaning::FullName),
            ("nom et prénom", Meaning::FullName),
            ("E-Mail-Adresse", Meaning::Email),
            ("email1", Meaning::Email),
            ("customerEmail", Meaning::Email),
            ("N° de téléphone", Meaning::Phone),
            ("Phone number", Meaning::Phone),
            ("Tel.", Meaning::Phone),
            ("Straße", Meaning::Street),
            ("Strasse", Meaning::Street),
            ("adresse_ip", Meaning::Ip),
            ("IPAddress", Meaning::Ip),
            ("adresse MAC", Meaning::Device),
            ("Code postal", Meaning::Postcode),
            ("dateofbirth", Meaning::BirthDate),
            ("Date de naissance", Meaning::BirthDate),
            ("Staatsangehoerigkeit", Meaning::Nationality),
            ("Ville de naissance", Meaning::BirthPlace),
            ("codice_fiscale", Meaning::TaxId),
            ("N° sécurité sociale", Meaning::NationalId),
            ("id_client", Meaning::CustomerId),
            ("Compte bancaire", Meaning::Iban),
            ("nombre", Meaning::FirstName),
            ("nombre del cliente", Meaning::FullName),
            ("company name", Meaning::Company),
            ("Commentaires", Meaning::Note),
            ("Groupe sanguin", Meaning::Health),
            ("Estado civil", Meaning::MaritalStatus),
            ("Kfz-Kennzeichen", Meaning::Vehicle),
            ("Benutzername", Meaning::Login),
            ("trade union", Meaning::Union),
            ("type_handicap", Meaning::Health),
            ("is_pregnant", Meaning::Health),
            ("montant salaire", Meaning::Salary),
        ] {
            assert_eq!(meaning(header), Some(expected), "{header}");
        }
    }

    #[test]
    fn headers_of_other_things() {
        for header in [
            "filename",
            "file_name",
            "nom_produit",
            "Nom du fichier",
            "product name",
            "hostname",
            "table_name",
            "nombre de clients",
            "nb_clients",
            "email_sent_count",
            "date_email",
            "email status",
            "artikelname",
            "nome file",
            "event_name",
            "id",
            "montant",
            "total",
            "prime",
            "",
            "village",
            "telecom",
            "agence",
            "via_api",
            "adresse url",
            "telephone model",
            "phone_type",
            "age moyen",
            "last_login",
            "job_id",
            "Kapitel",
            "status",
        ] {
            assert_eq!(meaning(header), None, "{header}");
        }
    }

    #[test]
    fn classes() {
        assert_eq!((Meaning::Email.class(), Meaning::City.class()), (Class::Direct, Class::Quasi));
        assert_eq!((Meaning::Religion.class(), Meaning::Note.class()), (Class::Sensitive, Class::None));
        assert!(Meaning::ALL.iter().all(|m| !m.name().is_empty()));
        // No phrase has two meanings; the same one twice is no harm.
        for (list, _) in [(PHRASES, 0), (WEAK, 1)] {
            let all: HashMap<&str, Meaning> = list.iter().flat_map(|(m, p)| p.split('|').map(|p| (p, *m))).collect();
            assert!(list.iter().all(|(m, p)| p.split('|').all(|p| all[p] == *m)));
        }
    }
}
