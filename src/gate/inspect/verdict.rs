//! What the counts of a column mean: direct identifier, quasi-identifier, sensitive, or none of them, with reasons.

use serde::Serialize;

use super::{COUNTRIES, Column, FIRST_YEAR, share};
use crate::gate::identify::{Kind, headers};

/// How much a column tells of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Identifies a person on its own.
    Direct,
    /// Narrows down who it is, together with others.
    Quasi,
    /// Of the special categories of article 9 of the GDPR, or of article 10.
    Sensitive,
    /// Nothing of the kind was seen.
    None,
}

/// What a column means for the persons in a table.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// How much it tells.
    pub class: Class,
    /// 0 to 1.
    pub confidence: f64,
    /// Why, one clause each.
    pub reasons: Vec<String>,
    /// What a policy could do with it, as it stands there.
    pub suggestion: String,
}

/// The share of values that must be of a kind.
const NEARLY_ALL: f64 = 0.9;
/// The chance that all values are of a kind without being meant so, below which they are believed.
const BELIEVED: f64 = 1e-4;
/// The share of values that all differ, from which on a column may be a key of its rows.
const KEY: f64 = 0.95;
/// Values from which on that means something.
const MANY: u64 = 50;
/// Years that days of birth are spread over.
const SPREAD: usize = 20;
/// Ages of persons.
const AGES: std::ops::RangeInclusive<u32> = 14..=110;

impl Class {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Quasi => "quasi",
            Self::Sensitive => "sensitive",
            Self::None => "none",
        }
    }
}

/// The verdict over a column.
pub(super) fn of(name: &str, column: &Column, this_year: u32) -> Verdict {
    let meaning = headers::meaning(name);
    let mut reasons = Vec::new();
    let mut best: Option<(Class, f64, String)> = None;
    let mut vote = |class: Class, confidence: f64, suggestion: String| {
        if best.as_ref().is_none_or(|(c, n, _)| (class, -confidence) < (*c, -*n)) {
            best = Some((class, confidence, suggestion));
        }
    };
    if let Some((kind, how_many)) = kind(column, meaning) {
        reasons.push(format!("{} of the values are of the form: {}", percent(how_many), kind.name()));
        let confirmed = says(meaning, kind);
        let class = if kind.is_direct() { Class::Direct } else { class_of(kind) };
        vote(class, if confirmed || kind.chance() < 0.02 { 0.98 } else { 0.85 }, suggestion(kind, column));
    }
    for kind in [Kind::Email, Kind::Iban] {
        let some = column.kinds.of(kind);
        if some > 0 && share(some, column.looked) < NEARLY_ALL {
            reasons.push(format!("{some} values are of the form: {}", kind.name()));
            vote(Class::Direct, 0.9, "\"pseudonym\"".into());
        }
    }
    let within: u64 = column.within.some().map(|(_, n)| n).sum();
    if within > 0 {
        let mut kinds: Vec<&str> = column.within.some().map(|(k, _)| k.name()).collect();
        kinds.sort_unstable();
        let of = if column.looked == column.cells {
            String::new()
        } else {
            format!(" of {} that were looked at closely", column.looked)
        };
        reasons.push(format!("text that contains identifiers, in {within} values{of}: {}", kinds.join(", ")));
        vote(Class::Direct, 0.9, "\"redact\"".into());
    }
    if let Some((place, n)) = column.phones.iter().enumerate().rev().max_by_key(|(_, n)| **n)
        && meaning == Some(headers::Meaning::Phone)
        && share(*n, column.sampled - column.placeholders) >= 0.5
    {
        let country = COUNTRIES[place];
        reasons.push(format!(
            "{} of the values that were tried are telephone numbers of {country}",
            percent(share(*n, column.sampled))
        ));
        vote(Class::Direct, 0.98, format!("{{ treatment = \"pseudonym\", normalise = [\"phone:{country}?\"] }}"));
    }
    if let Some(births) = births(column, this_year).filter(|_| meaning != Some(headers::Meaning::BirthDate)) {
        reasons.push(format!("dates that could be days of birth: {} of them are of ages 14 to 110", percent(births)));
        vote(Class::Quasi, 0.6, "\"year\"".into());
    }
    if let Some(meaning) = meaning.filter(|_| column.cells > 0) {
        reasons.push(format!("the header says: {}", meaning.name()));
        let class = match meaning.class() {
            headers::Class::Direct => Class::Direct,
            headers::Class::Quasi => Class::Quasi,
            headers::Class::Sensitive => Class::Sensitive,
            headers::Class::None => Class::None,
        };
        vote(class, 0.8, by_header(meaning, column));
    }
    let is_key = column.cells >= MANY && share(column.distinct(), column.cells) >= KEY && column.decimals == 0;
    if is_key && column.longest <= 40 {
        reasons.push("nearly every row has another value: it may be a key of persons in another table".into());
        vote(Class::Quasi, 0.4, "\"pseudonym\"".into());
    }
    let (class, confidence, suggestion) = best.unwrap_or((Class::None, 0.7, "\"keep\"".into()));
    Verdict { class, confidence, reasons, suggestion }
}

/// The kind that nearly all values are of: what the header says comes first, then what is the least by chance.
fn kind(column: &Column, meaning: Option<headers::Meaning>) -> Option<(Kind, f64)> {
    let none = (column.looked as f64 * share(column.placeholders, column.sampled)) as u64;
    let real = column.looked.saturating_sub(none).max(1);
    let distinct = column.distinct();
    let fits = |(kind, n): (Kind, u64)| {
        let how_many = share(n, real).min(1.0);
        let trials = distinct.min(n) as f64;
        let believed = kind.chance().powf(trials) < BELIEVED || says(meaning, kind);
        // So many numbers look like these that the header has to say it.
        let by_form_alone = matches!(kind, Kind::Postcode | Kind::UsSsn) && !says(meaning, kind);
        (how_many >= NEARLY_ALL && believed && !by_form_alone).then_some((kind, how_many))
    };
    let rank = |(kind, _): &(Kind, f64)| (!says(meaning, *kind), kind.chance());
    let all = column.kinds.some().filter_map(fits);
    all.min_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// Whether a header says what a kind is.
fn says(meaning: Option<headers::Meaning>, kind: Kind) -> bool {
    use headers::Meaning as M;
    let Some(meaning) = meaning else { return false };
    match kind {
        Kind::Email => meaning == M::Email,
        Kind::Phone => meaning == M::Phone,
        Kind::Iban => meaning == M::Iban,
        Kind::Card => meaning == M::Card,
        Kind::Ip => meaning == M::Ip,
        Kind::Mac => meaning == M::Device,
        Kind::Gps => meaning == M::Location,
        Kind::Postcode => meaning == M::Postcode,
        Kind::Date => meaning == M::BirthDate,
        Kind::FrSiren | Kind::FrSiret | Kind::FrTva | Kind::EsCif | Kind::ItPiva => meaning == M::CompanyId,
        Kind::Uuid | Kind::UrlUser => false,
        _ => matches!(meaning, M::NationalId | M::TaxId),
    }
}

fn class_of(kind: Kind) -> Class {
    match kind {
        Kind::Gps | Kind::Postcode => Class::Quasi,
        _ => Class::None,
    }
}

fn suggestion(kind: Kind, column: &Column) -> String {
    let phones = column.phones.iter().enumerate().rev().max_by_key(|(_, n)| **n);
    match kind {
        Kind::Email => "{ treatment = \"pseudonym\", normalise = [\"email\"] }".into(),
        Kind::Phone => {
            let country = phones.filter(|(_, n)| **n > 0).map_or("FR", |(i, _)| COUNTRIES[i]);
            format!("{{ treatment = \"pseudonym\", normalise = [\"phone:{country}?\"] }}")
        }
        Kind::Gps => "\"drop\"".into(),
        Kind::Postcode => "\"truncate:2\"".into(),
        Kind::Date | Kind::FrSiren | Kind::FrSiret | Kind::FrTva | Kind::EsCif | Kind::ItPiva => "\"keep\"".into(),
        Kind::Iban | Kind::Card | Kind::FrNir => "{ treatment = \"pseudonym\", normalise = [\"alnum\"] }".into(),
        _ => "\"pseudonym\"".into(),
    }
}

/// What a policy could do with a column of which the header alone tells.
fn by_header(meaning: headers::Meaning, column: &Column) -> String {
    use headers::Meaning as M;
    let dates = column.kinds.of(Kind::Date);
    let is_number = column.integers == column.cells;
    match meaning {
        M::Note => "\"redact\"".into(),
        M::Photo | M::Signature | M::Location => "\"drop\"".into(),
        M::BirthDate if dates > 0 => "\"year\"".into(),
        M::Postcode => "\"truncate:2\"".into(),
        M::Age if is_number => "\"bucket:10\"".into(),
        M::Salary if column.integers + column.decimals == column.cells => "\"bucket:1000\"".into(),
        m if m.class() == headers::Class::Direct => "\"pseudonym\"".into(),
        _ => "\"keep\"".into(),
    }
}

/// The share of dates that persons could be born on, if the column looks as such columns do: many years, up to not long ago.
fn births(column: &Column, this_year: u32) -> Option<f64> {
    let dates: u64 = column.years.iter().map(|n| u64::from(*n)).sum();
    if dates == 0 || share(dates, column.looked) < NEARLY_ALL {
        return None;
    }
    let years = || column.years.iter().enumerate().filter(|(_, n)| **n > 0);
    let of_age = |(i, _): &(usize, &u32)| this_year.checked_sub(FIRST_YEAR + *i as u32).is_some_and(|age| AGES.contains(&age));
    let fitting: u64 = years().filter(of_age).map(|(_, n)| u64::from(*n)).sum();
    let spread = years().next_back().zip(years().next()).map_or(0, |(last, first)| last.0 - first.0);
    Some(share(fitting, dates)).filter(|s| *s >= NEARLY_ALL && spread >= SPREAD && dates >= MANY)
}

fn percent(share: f64) -> String {
    if share >= 0.9995 { "100 %".into() } else { format!("{:.1} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::inspect::tests::inspect;

    /// The class of a column with this header and these values, and what is suggested.
    fn verdict(header: &str, values: impl Fn(u32) -> String) -> (Class, String) {
        let csv = format!("{header};x\n") + &(0..200).map(|i| format!("{};1\n", values(i))).collect::<String>();
        let verdict = inspect(csv).swap_remove(0).verdict;
        (verdict.class, verdict.suggestion)
    }

    /// A French social security number with its key.
    fn nir(i: u32) -> String {
        let number = 1_800_275_000_000 + u64::from(i) * 7919;
        format!("{number}{:02}", 97 - number % 97)
    }

    #[test]
    fn content_and_header_tell_what_a_column_is() {
        let date = |i: u32| format!("{}-0{}-1{}", 1930 + i % 70, 1 + i % 9, i % 10);
        assert_eq!(verdict("contact", |i| format!("c{i}@x.fr")).0, Class::Direct);
        assert_eq!(verdict("code", nir).0, Class::Direct);
        assert_eq!(verdict("nom_client", |i| format!("Nom{}", i % 30)).0, Class::Direct);
        assert_eq!(verdict("nom_produit", |i| format!("Nom{}", i % 30)).0, Class::None);
        assert_eq!(verdict("date_naissance", date), (Class::Quasi, "\"year\"".into()));
        assert_eq!(verdict("d", date), (Class::Quasi, "\"year\"".into()));
        assert_eq!(verdict("commande", |i| format!("2024-0{}-1{}", 1 + i % 9, i % 10)).0, Class::None);
        assert_eq!(verdict("code_postal", |i| format!("{:05}", 1000 + i * 37)), (Class::Quasi, "\"truncate:2\"".into()));
        assert_eq!(verdict("quantite", |i| (i % 9).to_string()).0, Class::None);
        assert_eq!(verdict("religion", |i| format!("r{}", i % 3)).0, Class::Sensitive);
        assert_eq!(
            verdict("remarques", |i| format!("rappeler le 06 12 34 56 {:02} demain", i % 100)),
            (Class::Direct, "\"redact\"".into())
        );
        assert_eq!(verdict("ref", |i| format!("K{i}")).0, Class::Quasi);
    }

    #[test]
    fn numbers_with_broken_check_digits_are_none() {
        let broken = |i: u32| {
            let number = 1_800_275_000_000 + u64::from(i % 20) * 7919;
            format!("{number}{:02}", 98 - number % 97)
        };
        assert_eq!(verdict("code", broken).0, Class::None);
    }
}
